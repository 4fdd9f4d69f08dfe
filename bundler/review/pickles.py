"""What a pickle would do when it is loaded: read opcode by opcode, never run.

A pickle is a program for a small machine (https://docs.python.org/3/library/pickletools.html): GLOBAL,
STACK_GLOBAL and INST fetch any object by name, REDUCE, OBJ and NEWOBJ call it.
"""

from __future__ import annotations

import io
import pickletools
from dataclasses import dataclass
from typing import IO, Any

from bundler.format.untrusted import shown
from bundler.format.wheelzip import DAMAGE, open_wheel
from bundler.review.secondscan import Opinion, second_opinion, together

MAX_PICKLE = 64 * 2**20
_MAX_OPCODES = 5_000_000
_MAX_MEMO = 1_000_000
_MAX_INSIDE = 200
_ZIP = b"PK\x03\x04"
# Whole modules from which a call runs commands, loads code or reaches out.
_DANGEROUS = {
    "os", "posix", "nt", "posixpath", "ntpath", "subprocess", "_posixsubprocess", "sys", "runpy", "pty",
    "socket", "_socket", "ssl", "shutil", "importlib", "_frozen_importlib", "imp", "pkgutil", "pickle",
    "_pickle", "cPickle", "marshal", "types", "ctypes", "_ctypes", "cffi", "webbrowser", "code", "codeop",
    "asyncio", "multiprocessing", "threading", "_thread", "signal", "pip", "setuptools", "distutils",
    "commands", "platform", "pdb", "bdb", "timeit", "cProfile", "profile", "trace", "doctest", "unittest",
    "idlelib", "urllib", "urllib2", "http", "httplib", "ftplib", "smtplib", "telnetlib", "poplib",
    "imaplib", "requests", "aiohttp", "httpx", "tempfile", "pathlib", "io", "_io", "zipimport",
    "ensurepip", "venv", "gc", "inspect", "atexit", "operator", "_operator", "linecache", "fileinput",
    "lib2to3", "tkinter", "sqlite3", "logging.config", "dill", "cloudpickle", "joblib", "torch.hub",
    "torch._dynamo", "torch._inductor", "torch.jit", "torch.utils.cpp_extension", "torch.serialization",
    "torch.utils.bottleneck", "torch.utils._config_module", "numpy.testing", "numpy.f2py",
}  # fmt: skip
_BUILTINS = {"builtins", "__builtin__", "__builtins__"}
_HARMLESS_BUILTINS = {
    "set", "frozenset", "dict", "list", "tuple", "bytearray", "bytes", "int", "float", "bool", "str",
    "complex", "slice", "range", "object", "print",
}  # fmt: skip
# What tensors and arrays are made of.
_TENSORS = {
    ("collections", "OrderedDict"), ("collections", "defaultdict"), ("_codecs", "encode"),
    ("copyreg", "_reconstructor"), ("copy_reg", "_reconstructor"),
    ("torch", "Size"), ("torch", "device"), ("torch", "dtype"), ("torch", "Tensor"),
    ("torch.nn.parameter", "Parameter"), ("torch.serialization", "_get_layout"),
    ("numpy", "ndarray"), ("numpy", "dtype"), ("argparse", "Namespace"),
    ("numpy.core.multiarray", "_reconstruct"), ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"), ("numpy.core.numeric", "_frombuffer"),
}  # fmt: skip


@dataclass(frozen=True)
class PickleFacts:
    """What was found. `dangerous` and `others` are `module.name`; `fault` says what was not read."""

    dangerous: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    fault: str = ""
    second: Opinion | None = None


def read_pickles(file: IO[bytes], size: int, *, second: bool = False) -> PickleFacts:
    """Look into a pickle, into several one after the other, or into an archive that holds some.

    At most 64 MiB of each are read; what lies behind is named as unread. `second`: picklescan looks too.
    """
    head = file.read(4)
    file.seek(0)
    if head == _ZIP:
        return _in_archive(file, second=second)
    return _in_stream(file.read(MAX_PICKLE), cut=size > MAX_PICKLE, second=second)


def _in_archive(file: IO[bytes], *, second: bool) -> PickleFacts:
    found: list[PickleFacts] = []
    try:
        with open_wheel(file) as archive:
            inside = [
                info
                for info in archive.infolist()
                if info.filename.endswith((".pkl", ".pickle")) or "data.pkl" in info.filename
            ]
            for info in inside[:_MAX_INSIDE]:
                with archive.open(info) as member:
                    data = member.read(MAX_PICKLE)
                found.append(_in_stream(data, cut=info.file_size > MAX_PICKLE, second=second))
    except DAMAGE as cause:
        found.append(PickleFacts(fault=f"is no sound archive: {shown(str(cause))}"))
    else:
        if len(inside) > _MAX_INSIDE:
            found.append(PickleFacts(fault=f"holds {len(inside)} pickles, {_MAX_INSIDE} were read"))
        if not inside:
            found.append(PickleFacts(fault="is an archive without a pickle that could be found"))
    return PickleFacts(
        tuple(dict.fromkeys(name for one in found for name in one.dangerous)),
        tuple(dict.fromkeys(name for one in found for name in one.others)),
        next((one.fault for one in found if one.fault), ""),
        together([_opinion(one) for one in found]) if second else None,
    )


def _opinion(facts: PickleFacts) -> Opinion:
    """Where there was no pickle to give it, what we did not read it did not either."""
    return facts.second or Opinion(fault=facts.fault or "not read")


def _in_stream(data: bytes, *, cut: bool, second: bool) -> PickleFacts:
    machine = _Machine()
    stream = io.BytesIO(data)
    fault = ""
    first = True
    while stream.tell() < len(data) and not fault:
        begin = stream.tell()
        try:
            for opcode, argument, _ in pickletools.genops(stream):
                machine.step(opcode.name, argument)
        except (ValueError, UnicodeDecodeError, OverflowError, MemoryError, IndexError) as cause:
            # torch's old format has raw storages behind its pickles: bytes that are no opcodes.
            if first or stream.tell() == begin:
                fault = f"ends as no pickle does: {shown(str(cause))}"
            break
        except _TooLongError:
            fault = f"has over {_MAX_OPCODES} opcodes"
        first = False
    if cut:
        fault = f"is over {MAX_PICKLE} bytes; what lies behind was not read"
    opinion = machine.opinion(data, fault) if second else None
    return PickleFacts(tuple(machine.dangerous), tuple(machine.others), fault, opinion)


class _TooLongError(Exception):
    pass


class _Machine:
    """Follows the texts on the stack and in the memo, which name what is fetched."""

    def __init__(self) -> None:
        self.dangerous: dict[str, None] = {}
        self.others: dict[str, None] = {}
        self._texts: list[str | None] = []
        self._memo: dict[Any, str | None] = {}
        self._count = self._fetches = self._memos = 0

    def step(self, name: str, argument: Any) -> None:
        """Take one opcode."""
        self._count += 1
        if self._count > _MAX_OPCODES:
            raise _TooLongError
        if name in ("GLOBAL", "INST"):
            self._fetched(*str(argument).split(" ", 1))
        elif name == "STACK_GLOBAL":
            self._fetches += 1
            attribute, module = [*reversed(self._texts[-2:]), None, None][:2]
            self._fetched(module, attribute)
        elif name.startswith("EXT"):
            self._fetched("copyreg", f"extension {argument}")
        elif name == "MEMOIZE":
            self._remember(len(self._memo))
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self._remember(argument)
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self._push(self._memo.get(argument))
        elif name in ("PROTO", "FRAME", "MARK", "STOP"):
            pass
        elif isinstance(argument, str):
            self._push(argument)
        else:
            self._push(None)

    def opinion(self, data: bytes, fault: str) -> Opinion:
        """Another scanner's, of the same bytes; of what we did not read to its end it is none but a warning."""
        found = second_opinion(data, self._count, self._fetches, self._memos)
        known = found.dangerous or found.suspicious
        return found if known or found.fault or not fault else Opinion(fault=fault)

    def _push(self, text: str | None) -> None:
        self._texts.append(text)
        del self._texts[:-8]

    def _remember(self, key: Any) -> None:
        self._memos += 1
        if len(self._memo) < _MAX_MEMO:
            self._memo[key] = self._texts[-1] if self._texts else None

    def _fetched(self, module: str | None, attribute: str | None) -> None:
        self._push(None)
        if module is None or attribute is None:
            # No pickler writes a name that it computes; who hides one has a reason.
            self.dangerous["a name that is put together while it runs"] = None
            return
        name = shown(f"{module}.{attribute}")
        if is_dangerous(module, attribute):
            self.dangerous[name] = None
        elif not _is_tensor_part(module, attribute):
            self.others[name] = None


def is_dangerous(module: str, attribute: str) -> bool:
    """Whether calling it runs commands, loads code or reaches out."""
    if (module, attribute) in _TENSORS or _is_tensor_part(module, attribute):
        return False
    if module in _BUILTINS:
        return attribute.split(".")[0] not in _HARMLESS_BUILTINS or "." in attribute
    parts = module.split(".")
    return any(".".join(parts[:depth]) in _DANGEROUS for depth in range(1, len(parts) + 1))


def _is_tensor_part(module: str, attribute: str) -> bool:
    if module in _BUILTINS:
        return attribute in _HARMLESS_BUILTINS
    # `_rebuild_tensor.__globals__` is a name too, since protocol 4.
    if not attribute.isidentifier():
        return False
    return (
        (module, attribute) in _TENSORS
        or (module == "torch._utils" and attribute.startswith("_rebuild_"))
        or (module in ("torch", "torch.storage", "torch.cuda") and attribute.endswith("Storage"))
        or (module == "torch" and attribute.isidentifier() and attribute.islower()
            and attribute.startswith(("float", "bfloat", "int", "uint", "bool", "complex", "half")))
        or (module == "numpy" and attribute.startswith(("float", "int", "uint", "bool")))
    )  # fmt: skip
