"""Which model files run code when they are loaded: by their bytes where a name does not tell.

A pickle is a program (https://docs.python.org/3/library/pickle.html); torch's own files are ZIPs that
hold one. Others can hold code, and most do not: Keras models may have Lambda layers
(https://keras.io/api/layers/core_layers/lambda/), TensorFlow's graphs read and write files.
"""

from __future__ import annotations

from collections.abc import Callable

HEAD_BYTES = 1024
_PICKLE_NAMES = (
    ".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".dill", ".pdparams", ".t7", ".mar",
    ".nemo",
)  # fmt: skip
_CODE_NAMES = (".h5", ".hdf5", ".keras", ".pb")
# Formats of data alone, and texts: not looked into.
_DATA_NAMES = (
    ".safetensors", ".gguf", ".json", ".jsonl", ".txt", ".md", ".jinja", ".jinja2", ".py", ".yaml",
    ".yml", ".toml", ".csv", ".tsv", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pdf", ".html",
    ".gitattributes", ".gitignore", ".wav", ".mp3", ".mp4", ".tiktoken", ".model", ".spm", ".bpe",
    ".vocab", ".lock", ".license", ".onnx", ".ipynb",
)  # fmt: skip
_ZIP = b"PK\x03\x04"


def can_hold_code(path: str) -> bool:
    """Whether a file's format has room for code, although most files of it have none."""
    return path.lower().endswith(_CODE_NAMES)


def is_program(path: str, size: int, head: Callable[[], bytes]) -> bool:
    """Whether loading a file runs code that it holds: a pickle, or an archive of them.

    Args:
        path: its name.
        size: bytes.
        head: gives its first bytes; asked only where the name leaves it open.
    """
    name = path.lower().rsplit("/", 1)[-1]
    if name.endswith((*_DATA_NAMES, *_CODE_NAMES)) or size == 0:
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
