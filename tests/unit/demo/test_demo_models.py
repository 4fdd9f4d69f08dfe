"""The demo's models and wheel, checked without an engine: bytes, headers, sizes, names."""

import base64
import hashlib
import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bundler.demo.cpu_shim import write_cpu_shim_wheel
from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.demo.tiny_qwen35moe import write_tiny_qwen35_moe
from bundler.demo.tokenizer import SPECIAL, Vocabulary, tokenizer_json, vocabulary

BF16_BYTES = 2
F32_BYTES = 4
_SCALARS = {4: "<I", 5: "<i", 6: "<f", 7: "<?"}
_STRING, _ARRAY = 8, 9


class Gguf:
    """A reader of what the writer writes: metadata, and each tensor's shape, type and place."""

    def __init__(self, path: Path) -> None:
        self.raw = path.read_bytes()
        self._at = 4
        assert self.raw[:4] == b"GGUF"
        self.version, tensors, keys = self._read("<I"), self._read("<Q"), self._read("<Q")
        self.metadata = {self._string(): self._value(self._read("<I")) for _ in range(keys)}
        self.tensors = {}
        for _ in range(tensors):
            name = self._string()
            shape = tuple(self._read("<Q") for _ in range(self._read("<I")))
            self.tensors[name] = shape, self._read("<I"), self._read("<Q")
        align = self.metadata["general.alignment"]
        self.start = -(-self._at // align) * align

    def _read(self, form: str) -> Any:
        [value] = struct.unpack_from(form, self.raw, self._at)
        self._at += struct.calcsize(form)
        return value

    def _string(self) -> str:
        size = self._read("<Q")
        self._at += size
        return self.raw[self._at - size : self._at].decode()

    def _value(self, kind: int) -> Any:
        if kind == _ARRAY:
            inner, count = self._read("<I"), self._read("<Q")
            return [self._value(inner) for _ in range(count)]
        return self._string() if kind == _STRING else self._read(_SCALARS[kind])

    def rows(self, name: str) -> list[bytes]:
        (width, count), _, at = self.tensors[name]
        begin, size = self.start + at, width * F32_BYTES
        return [self.raw[begin + n * size : begin + (n + 1) * size] for n in range(count)]


def safetensors(path: Path) -> tuple[dict[str, Any], bytes]:
    raw = path.read_bytes()
    [size] = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + size])
    assert header.pop("__metadata__") == {"format": "pt"}
    return header, raw[8 + size :]


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Gguf:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_tiny_gguf(path)
    return Gguf(path)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qwen")
    write_tiny_qwen35_moe(folder)
    return folder


@pytest.fixture(scope="module")
def words() -> Vocabulary:
    return vocabulary()


def plain_rows(rows: list[bytes], words: Vocabulary) -> list[bool]:
    """Whether each row is that of a plain token, of a padded vocabulary too."""
    return [n < words.size and words.is_plain(n) for n in range(len(rows))]


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: write_tiny_gguf(folder / "tiny.gguf"),
        write_tiny_qwen35_moe,
        write_cpu_shim_wheel,
    ],
    ids=["gguf", "qwen", "wheel"],
)
def test_twice_the_same_bytes(write: Callable[[Path], object], tmp_path: Path) -> None:
    made = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        write(folder)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert made[0] == made[1] != {}


def test_another_process_with_another_hash_seed_makes_the_same_bytes(
    gguf: Gguf, tmp_path: Path
) -> None:
    code = "import sys, pathlib; from bundler.demo.tiny_gguf import write_tiny_gguf as write;"
    code += "write(pathlib.Path(sys.argv[1]))"
    subprocess.run(
        [sys.executable, "-c", code, tmp_path / "tiny.gguf"],
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[3])}, check=True,
    )  # fmt: skip
    assert (tmp_path / "tiny.gguf").read_bytes() == gguf.raw


def test_the_vocabulary_covers_every_byte_and_names_no_token_twice(words: Vocabulary) -> None:
    assert len(set(words.tokens)) == words.size
    assert len({token for token in words.tokens if len(token) == 1}) >= 256
    assert words.tokens[-len(SPECIAL) :] == SPECIAL
    known = set(words.tokens)
    assert all({left, right, left + right} <= known for left, right in words.merges)


def test_the_gguf_is_whole(gguf: Gguf, words: Vocabulary) -> None:
    assert gguf.version == 3
    found = gguf.metadata
    assert found["general.architecture"] == "llama"
    assert found["llama.context_length"] == 4096
    assert tuple(found["tokenizer.ggml.tokens"]) == words.tokens
    assert len(found["tokenizer.ggml.token_type"]) == words.size
    assert found["tokenizer.ggml.tokens"][found["tokenizer.ggml.eos_token_id"]] == "<|im_end|>"
    end = 0
    for shape, kind, at in gguf.tensors.values():
        assert (kind, at) == (0, end)
        count = 1
        for size in shape:
            count *= size
        end += -(-count * F32_BYTES // 32) * 32
    assert gguf.start + end == len(gguf.raw)


def test_the_gguf_never_prefers_a_token_that_is_no_ascii_text(
    gguf: Gguf, words: Vocabulary
) -> None:
    rows = gguf.rows("output.weight")
    for row, plain in zip(rows, plain_rows(rows, words), strict=True):
        assert any(row[F32_BYTES:]) == plain


@pytest.mark.parametrize("head", [128, 32])
def test_the_checkpoint_agrees_with_its_index(tmp_path: Path, head: int) -> None:
    write_tiny_qwen35_moe(tmp_path, linear_head_dim=head)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    shards = sorted(tmp_path.glob("*.safetensors"))
    assert [path.name for path in shards] == [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    total, placed = 0, {}
    for path in shards:
        header, data = safetensors(path)
        end = 0
        for name, tensor in header.items():
            count = BF16_BYTES
            for size in tensor["shape"]:
                count *= size
            assert tensor["dtype"] == "BF16"
            assert tensor["data_offsets"] == [end, end + count], name
            end += count
            placed[name] = path.name
        assert end == len(data)
        total += end
    assert placed == index["weight_map"]
    assert total == index["metadata"]["total_size"]
    config = json.loads((tmp_path / "config.json").read_text())["text_config"]
    assert config["linear_key_head_dim"] == config["linear_value_head_dim"] == head


def test_the_checkpoint_holds_only_ordinary_numbers(checkpoint: Path) -> None:
    # bfloat16's exponent straddles both bytes; all ones means infinity or not-a-number.
    for path in checkpoint.glob("*.safetensors"):
        _, data = safetensors(path)
        exponents = {(high & 0x7F) << 1 | low >> 7 for low, high in zip(data[::2], data[1::2])}  # noqa: B905
        assert max(exponents) < 0xFF


def test_the_checkpoint_never_prefers_a_token_that_is_no_ascii_text(
    checkpoint: Path, words: Vocabulary
) -> None:
    for path in checkpoint.glob("*.safetensors"):
        header, data = safetensors(path)
        if "lm_head.weight" in header:
            break
    count, width = header["lm_head.weight"]["shape"]
    begin, _ = header["lm_head.weight"]["data_offsets"]
    size = width * BF16_BYTES
    rows = [data[begin + n * size : begin + (n + 1) * size] for n in range(count)]
    for row, plain in zip(rows, plain_rows(rows, words), strict=True):
        assert any(row[BF16_BYTES:]) == plain


def test_the_checkpoint_is_what_the_hub_would_hold(checkpoint: Path, words: Vocabulary) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    assert config["architectures"] == ["Qwen3_5MoeForConditionalGeneration"]
    assert config["text_config"]["vocab_size"] >= words.size
    assert words.tokens[config["image_token_id"]] == "<|image_pad|>"
    assert "license: apache-2.0" in (checkpoint / "README.md").read_text()
    names = {path.name for path in checkpoint.iterdir()}
    assert {
        "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json",
        "preprocessor_config.json",
    } <= names  # fmt: skip


def test_the_tokenizer_loads_and_gives_text_back(words: Vocabulary) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json(words)))
    assert tokenizer.get_vocab_size() == words.size
    for text in (
        "the people would work, 123\n\tok",
        "망분리 서버 점검 안녕하세요",
        "mixed 한글 the",
    ):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    marked = tokenizer.encode("<|im_start|>user\nhi<|im_end|>").ids
    assert (marked[0], marked[-1]) == (words.id("<|im_start|>"), words.id("<|im_end|>"))
    assert tokenizer.encode(" people").ids == [words.id("\u0120people")]


def test_the_wheels_record_is_right(tmp_path: Path) -> None:
    wheel = write_cpu_shim_wheel(tmp_path)
    assert wheel.name == "airbundle_cpu_shim-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        files = {name: archive.read(name) for name in archive.namelist()}
    info = "airbundle_cpu_shim-1.dist-info"
    lines = files[f"{info}/RECORD"].decode().splitlines()
    listed = {name: (digest, size) for name, digest, size in (line.split(",") for line in lines)}
    assert listed.pop(f"{info}/RECORD") == ("", "")
    assert listed.keys() == files.keys() - {f"{info}/RECORD"}
    for name, (digest, size) in listed.items():
        raw = hashlib.sha256(files[name]).digest()
        assert digest == "sha256=" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
        assert int(size) == len(files[name])
    assert b"Name: airbundle-cpu-shim\nVersion: 1\n" in files[f"{info}/METADATA"]
    assert b"Tag: py3-none-any\n" in files[f"{info}/WHEEL"]


@pytest.mark.parametrize("compiled_half_loads", [False, True])
def test_the_shim_declares_operators_only_where_they_are_missing(
    tmp_path: Path, compiled_half_loads: bool
) -> None:
    """With stand-ins for torch and torchvision, in an interpreter that site-packages arm."""
    site = tmp_path / "site"
    with zipfile.ZipFile(write_cpu_shim_wheel(tmp_path)) as archive:
        archive.extractall(site)
    stand_ins = {
        "torch/__init__.py": "from torch import library\nclass ops: torchvision = object()\n",
        "torch/library.py": (
            "DEFINED = []\n"
            "class Library:\n"
            "    def __init__(self, *words): self.words = words\n"
            "    def define(self, schema): DEFINED.append(schema.split('(')[0])\n"
        ),
        "torchvision/__init__.py": (
            "from . import extension\nfrom torchvision import _meta_registrations\n"
        ),
        "torchvision/extension.py": f"def _has_ops(): return {compiled_half_loads}\n",
        "torchvision/_meta_registrations.py": (
            "from torch.library import DEFINED\nSEEN = sorted(DEFINED)\n"
        ),
    }
    for name, text in stand_ins.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text)
    code = (
        "import site, sys; site.addsitedir(sys.argv[1]); early = 'torch' in sys.modules;"
        "import torchvision; print(early, *torchvision._meta_registrations.SEEN)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, site], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", *([] if compiled_half_loads else ["nms", "qnms"])]
