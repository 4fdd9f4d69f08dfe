"""A small bundle with everything in it that a reviewer must find."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

from bundler.domain.spec import BundleSpec
from tests.fakes.small_bundle import SmallBundle
from tests.fakes.wheels import make_wheel

ELF = b"\x7fELF\x02\x01\x01" + bytes(200)
GPL = b"GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007\n\n Copyright (C) 2007 Free Software\n"
MIT = (
    b"MIT License\n\nCopyright (c) 2026 Toy\n\nPermission is hereby granted, free of charge, to any person"
    b" obtaining a copy\nof this software and associated documentation files (the Software), to deal\n"
    b"The above copyright notice and this permission notice shall be included in all\ncopies or"
    b" substantial portions of the Software.\n"
)
WALK = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
CARD = """---
license: other
license_name: toy-licence
license_link: https://example.org/LICENSE
pipeline_tag: text-generation
datasets: [toy/data]
base_model: toy/base
language: [ko, en]
---
# 장난감 모델
"""


class Command:
    """Pickled, it would run a command when it is loaded."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        import os

        return os.system, ("true",)


def torch_archive(content: object) -> bytes:
    """As torch.save writes it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        # A fixed time: the same contents are the same bytes.
        archive.writestr(zipfile.ZipInfo("archive/data.pkl"), pickle.dumps(content, protocol=2))
        archive.writestr(zipfile.ZipInfo("archive/version"), b"3\n")
    return buffer.getvalue()


class PlantedBundle(SmallBundle):
    """Every plant has a name that the tests look for."""

    def spec(self) -> BundleSpec:
        plain = super().spec().model_dump(mode="json")
        plain["models"][0]["allow_pickle"] = ["evil.bin", "plain.pkl"]
        return BundleSpec.model_validate(plain)

    def prepare(self) -> None:
        super().prepare()
        wheels = self.folder / "wheels"
        for path in wheels.glob("toy_*.whl"):
            path.unlink()
        engine = Path(__file__).with_name("toy_engine.py").read_bytes()
        make_wheel(
            wheels, "toy-engine", "1.0",
            {"toy_engine.py": engine, "toy_engine/libfast.so": ELF, "toy_engine/bin/run": ELF},
            {"llama-server-toy": "toy_engine:main"}, requires=("toy-dependency", "toy-gpl>=1; python_version>'3'"),
            metadata="License-Expression: Apache-2.0\nSummary: An engine\nAuthor: Toy Company\n",
        )  # fmt: skip
        make_wheel(
            wheels, "toy-dependency", "2.0",
            {
                "toy_dependency.py": b"X = 1\n",
                "toy_dependency.pth": b"import os; os.system('true')\n",
                "toy_dependency-2.0.dist-info/licenses/LICENSE": MIT,
            },
            metadata="Classifier: License :: OSI Approved :: MIT License\n",
        )  # fmt: skip
        make_wheel(
            wheels, "toy-gpl", "1.0",
            {"toy_gpl.py": b"", "toy_gpl-1.0.dist-info/LICENSE": GPL, "quiet.pth": b"import toy_gpl\n"},
            metadata="License: GPLv3\n",
        )  # fmt: skip
        make_wheel(wheels, "toy-odd", "1.0", {"toy_odd.py": b""}, metadata="License: BSD\n")
        model = self.folder / "model"
        (model / "README.md").write_text(CARD, encoding="utf-8")
        config = {"architectures": ["ToyForCausalLM"], "model_type": "toy", "torch_dtype": "bfloat16",
                  "quantization_config": {"quant_method": "fp8"},
                  "auto_map": {"AutoModel": "modeling_toy.Toy", "AutoConfig": "other/repo--conf.C"}}  # fmt: skip
        (model / "config.json").write_text(json.dumps(config))
        (model / "modeling_toy.py").write_bytes(b"class Toy: ...\n")
        (model / "evil.bin").write_bytes(torch_archive({"weights": Command()}))
        (model / "plain.pkl").write_bytes(pickle.dumps({"a": [1, 2.0, "b"]}))
        (model / "tokenizer_config.json").write_text(json.dumps({"chat_template": WALK}))
        (model / "chat_template.jinja").write_text(
            "{% for m in messages %}{% generation %}{{ m['content'] | trim }}{% endgeneration %}{% endfor %}"
        )
