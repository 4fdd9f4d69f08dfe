"""What an engine is told so that it reaches for nothing outside: set at every start, shown to reviewers."""

# Nothing phones home, nothing is looked up on a hub, on a host that has no network anyway: a look-up
# there costs minutes of time-outs instead of an error.
VLLM_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "FLASHINFER_NO_DOWNLOAD": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
