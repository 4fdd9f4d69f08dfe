"""READ-ME.txt beside the volumes: what this is and the first steps, Korean and English."""

from __future__ import annotations

from bundler.domain.manifest import Manifest
from bundler.domain.needs import HostNeeds, needs_lines
from bundler.domain.sizes import human
from bundler.format import layout

_TEXT = """\
{name}
{rule}
airbundle 반입 번들 / airbundle transfer bundle

대상 서버 / target : {arch}, Python {python}, glibc {glibc} 이상 / or newer
엔진 / engine      : {engine} {version}
모델 / models      : {models}
볼륨 / volumes     : {count}개 / {count} files, {size}
작성일 / created   : {created}
{needs}
[검증] 공개키는 매체가 아닌 별도 경로로 받으십시오.
[Verify] Get the public key by another way than this medium.

  sha256sum -c {checksums}
  # OpenSSL 3 이상 / OpenSSL 3 or newer:
  openssl pkeyutl -verify -rawin -pubin -inkey KEY.pem -sigfile {signature} -in {manifest}
  python3 {bootstrap} verify --key KEY.pem

[설치] 인터넷, pip, root 권한이 필요 없습니다.
[Install] No network, no pip and no root needed.

  python3 {bootstrap} install --key KEY.pem --root ROOT
  ROOT/bin/airbundle import . --root ROOT --key KEY.pem
  ROOT/bin/airbundle preflight --root ROOT
  ROOT/bin/airbundle install --root ROOT
  ROOT/bin/airbundle start --root ROOT
  ROOT/bin/airbundle accept --root ROOT
  ROOT/bin/airbundle report --root ROOT

볼륨은 합치지 않고 그대로 쓰는 일반 ZIP 파일(무압축)입니다. 각각 따로 검사할 수 있습니다.
Each volume is an ordinary stored ZIP file, usable and checkable on its own; nothing is to be joined.
"""


_DOCS = """
[문서] {name}을 브라우저로 여십시오. 인터넷이 필요 없습니다.
[Documentation] Open {name} in a browser; no network is needed.
"""


def read_me(manifest: Manifest, *, handbook: bool = False) -> bytes:
    """The text for a bundle. The manifest's own `loose` list is not used.

    Args:
        manifest: of the bundle.
        handbook: whether the documentation lies beside it.
    """
    docs = _DOCS.format(name=layout.HANDBOOK) if handbook else ""
    text = _TEXT.format(
        name=manifest.name,
        rule="=" * len(manifest.name),
        arch=f"{manifest.target.os} {manifest.target.arch}",
        python=manifest.target.python,
        glibc=manifest.target.glibc,
        engine=manifest.engine.distribution,
        version=manifest.engine.version,
        models=", ".join(
            f"{model.origin}{'@' + model.revision[:12] if model.revision else ''}"
            for model in manifest.models
        )
        or "없음 / none",
        count=len(manifest.volumes),
        size=human(sum(volume.size for volume in manifest.volumes)),
        created=manifest.created,
        needs=_needs(manifest.needs),
        checksums=layout.CHECKSUMS,
        signature=layout.SIGNATURE,
        manifest=layout.MANIFEST,
        bootstrap=layout.BOOTSTRAP,
    )
    return (text + docs).encode()


def _needs(needs: HostNeeds) -> str:
    lines = needs_lines(needs)
    if not lines:
        return ""
    return "\n서버에 필요한 것 / the server must have:\n" + "".join(
        f"  - {line}\n" for line in lines
    )
