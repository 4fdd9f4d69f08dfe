"""What a model's own files say about it: architecture, exact weight bytes, attention, what could run."""

from typing import Literal

from pydantic import Field

from bundler.domain.record import Record


class LayerGroup(Record):
    """Layers of one kind, which keep the same state for each token or request.

    `full` and `sliding` keep K and V of every kv head; `mla` one compressed vector and one rotary
    part (DeepSeek-V2); `linear` a constant state (gated delta net, Mamba-like), whatever the length.
    """

    kind: Literal["full", "sliding", "mla", "linear"]
    layers: int = Field(ge=1)
    kv_heads: int = Field(0, description="full, sliding")
    head_dim: int = Field(0, description="full, sliding: elements of one K head")
    v_head_dim: int = Field(0, description="full, sliding: elements of one V head")
    window: int = Field(0, description="sliding: tokens")
    kv_lora_rank: int = Field(0, description="mla")
    qk_rope_head_dim: int = Field(0, description="mla")
    k_heads: int = Field(0, description="linear")
    v_heads: int = Field(0, description="linear")
    k_dim: int = Field(0, description="linear: elements of one key head")
    v_dim: int = Field(0, description="linear: elements of one value head")
    conv: int = Field(0, description="linear: width of the causal convolution")


class ModelFacts(Record):
    """Facts of one model. None or empty: the files do not say."""

    name: str
    format: Literal["safetensors", "gguf", "pickle", "adapter", "none"] = "none"
    architectures: tuple[str, ...] = Field((), description="`architectures` of config.json.")
    model_type: str = ""
    text_model_type: str = Field("", description="Of `text_config` when the model has one.")
    groups: tuple[LayerGroup, ...] = ()
    attention_heads: int | None = None
    hidden_size: int | None = None
    vocab_size: int | None = None
    max_context: int | None = Field(
        None, description="Tokens that it was made for, stretched by the rope scaling it states."
    )
    rope_scaling: str = Field("", description="As it is stated, e.g. `yarn x4 of 32768`.")
    experts: int = Field(0, description="Routed experts of one layer; 0 for a dense model.")
    experts_per_token: int = 0
    moe_intermediate_size: int | None = None
    mtp_layers: int = Field(0, description="Layers for multi-token prediction.")
    state_dtype: str = Field("float32", description="Of linear layers' states.")
    weight_bytes: int = Field(0, description="All tensors, from the headers.")
    expert_bytes: int = Field(0, description="Tensors of routed experts, which can stay in RAM.")
    dtypes: dict[str, int] = Field({}, description="Tensor type -> bytes.")
    tensors: int = 0
    weight_files: tuple[str, ...] = Field((), description="Whose tensors are counted.")
    unused_weights: tuple[str, ...] = Field(
        (), description="Further weight files, which the engine does not load."
    )
    quantization: str = Field(
        "", description="fp8, awq, gptq, mxfp4, nvfp4, Q4_K_M ...; empty: none."
    )
    quantization_block: tuple[int, ...] = Field(
        (), description="Block of block-wise FP8, e.g. 128, 128."
    )
    pickles: tuple[str, ...] = Field((), description="Files that run code when they are loaded.")
    code_files: tuple[str, ...] = Field(
        (), description="Files of a format that can hold code (Keras, TensorFlow)."
    )
    remote_code: tuple[str, ...] = Field(
        (), description="Python files that `auto_map` names; `repo--file` of another repository."
    )
    absent_code: tuple[str, ...] = Field((), description="Of these, which are not there.")
    python_files: tuple[str, ...] = Field((), description="Python files that it does not name.")
    unknown_layers: str = Field("", description="Layers whose state cannot be calculated, and why.")
    missing: tuple[str, ...] = Field(
        (), description="Shards that the index names and that are not there."
    )
    faults: tuple[str, ...] = Field((), description="What is broken in a header, one line each.")
    has_config: bool = False
    has_tokenizer: bool = False
    has_chat_template: bool = False
    companions: tuple[str, ...] = Field(
        (), description="Of a GGUF: files for Ollama beside it (template, system, params)."
    )
    base_model: str = Field("", description="Of an adapter: the model that it belongs to.")

    @property
    def hybrid(self) -> bool:
        """Whether some layers keep a constant state instead of keys and values."""
        return any(group.kind == "linear" for group in self.groups)
