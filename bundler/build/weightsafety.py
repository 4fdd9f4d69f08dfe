"""Which model files run code when they are loaded: by their bytes where a name does not tell.

A pickle is a program (https://docs.python.org/3/library/pickle.html); torch's own files are ZIPs that
hold one. Keras and HDF5 models can hold Python lambdas.
"""

from __future__ import annotations

from collections.abc import Callable

HEAD_BYTES = 1024
_PICKLE_NAMES = (
    ".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".dill", ".pdparams", ".t7",
)  # fmt: skip
_CODE_NAMES = (".h5", ".hdf5", ".keras", ".pb", ".mar", ".nemo")
# Formats of data alone, and texts: not looked into.
_DATA_NAMES = (
    ".safetensors", ".gguf", ".json", ".jsonl", ".txt", ".md", ".jinja", ".jinja2", ".py", ".yaml",
    ".yml", ".toml", ".csv", ".tsv", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pdf", ".html",
    ".gitattributes", ".gitignore", ".wav", ".mp3", ".mp4", ".tiktoken", ".model", ".spm", ".bpe",
    ".vocab", ".lock", ".license", ".onnx", ".ipynb",
)  # fmt: skip
_ZIP = b"PK\x03\x04"


def runs_code(path: str, size: int, head: Callable[[], bytes]) -> bool:
    """Whether loading a file can run code.

    Args:
        path: its name.
        size: bytes.
        head: gives its first bytes; asked only where the name leaves it open.
    """
    name = path.lower().rsplit("/", 1)[-1]
    if name.endswith(_CODE_NAMES):
        return True
    if name.endswith(_DATA_NAMES) or size == 0:
        return False
    looked = head()
    if is_pickle(looked):
        return True
    if name.endswith(".npy"):
        return b"'|O'" in looked
    if name.endswith(".npz"):
        return True
    # Protocols 0 and 1 of pickle have no magic number: the name decides.
    return name.endswith(_PICKLE_NAMES) and not looked.startswith((b"GGUF", b"ggml", b"lmgg"))


def is_pickle(head: bytes) -> bool:
    """Whether bytes begin as a pickle of protocol 2 to 5, or as torch's ZIP of one."""
    if len(head) > 2 and head[0] == 0x80 and 2 <= head[1] <= 5:
        return True
    return head.startswith(_ZIP) and b".pkl" in head[:HEAD_BYTES]
