"""The command line's root: commands, and the one place that turns errors into exit codes."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated

import typer

from bundler.cli import language
from bundler.cli.completing import completed_words
from bundler.cli.console import say, show_json
from bundler.cli.examples import EXAMPLES
from bundler.cli.streams import ERR, OUT, plain_wanted
from bundler.errors import EXIT_INTERRUPTED, BundlerError, EngineError, FileAccessError

# Where each command lives. A run loads the module of its own command alone: a check of a stick should not
# wait for what builds bundles.
HOMES = {
    "init": "init_cmds",
    "doctor": "doctor_cmds",
    "plan": "plan_cmds",
    "lock": "lock_cmds",
    **dict.fromkeys(("build", "inspect", "diff", "keygen", "schema"), "build_cmds"),
    "copy": "copy_cmds",
    **dict.fromkeys(("verify", "import"), "incoming_cmds"),
    **dict.fromkeys(("install", "start", "stop"), "deploy_cmds"),
    **dict.fromkeys(("status", "logs", "kernels"), "look_cmds"),
    **dict.fromkeys(("releases", "upgrade", "rollback"), "release_cmds"),
    **dict.fromkeys(("uninstall", "gc"), "removal_cmds"),
    "repair": "repair_cmds",
    **dict.fromkeys(("accept", "report", "demo"), "accept_cmds"),
    **dict.fromkeys(("sign", "attach", "approve", "reject"), "sign_cmds"),
    "trust": "trust_cmds",
    "audit": "audit_cmds",
    "receipt": "receipt_cmds",
    "golden": "golden_cmds",
    "baseline": "baseline_cmds",
    "review": "review_cmds",
    "docs": "docs_cmds",
    "preflight": "preflight_cmds",
    **dict.fromkeys(("run", "export", "serve"), "run_cmds"),
    "man": "man_cmds",
}


def make_app(argv: list[str]) -> typer.Typer:
    """The command line for these words: with one command's module, or all when none is named."""
    app = typer.Typer(
        name="airbundle",
        help="Carry an LLM service across an air gap and prove that it works there.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # rich draws help in bold and boxes, whatever NO_COLOR says.
        rich_markup_mode=None if plain_wanted() else "rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    argv = argv or completed_words()
    named = next((word for word in argv if not word.startswith("-")), "")
    for module in [HOMES[named]] if named in HOMES else dict.fromkeys(HOMES.values()):
        import_module(f"bundler.cli.{module}").register(app)
    _with_examples(app, "")
    return app


def _with_examples(app: typer.Typer, path: str) -> None:
    """Give each command its example, at the end of its help."""
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        example = EXAMPLES.get(f"{path} {name}".strip())
        command.epilog = f"Example: {example}" if example else None
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _with_examples(group.typer_instance, group.typer_instance.info.name or "")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"airbundle {version('airbundle')}")
        raise typer.Exit


def _options(
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show debug lines and tracebacks.")
    ] = False,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if verbose:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)


def main() -> None:
    """Run the command line and exit with the code that belongs to the outcome."""
    # A service manager's SIGTERM must clean up as Ctrl-C does: engines, temporary folders.
    signal.signal(signal.SIGTERM, _terminated)
    # What is made while loading stays: looking through it for garbage costs a tenth of the start.
    gc.set_threshold(100_000, 20, 20)
    # Nor does another package's plugin take part in reading a bundle; looking for one takes as long again.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    code = run(sys.argv[1:])
    # All that is left goes with the process: no last look through it either.
    gc.freeze()
    sys.exit(code)


def _terminated(number: int, frame: object) -> None:
    sys.exit(128 + number)


def run(argv: list[str]) -> int:
    """Run one command and give its exit code."""
    if "--verbose" in argv:
        # It is everybody's, wherever it stands.
        argv = ["--verbose", *(word for word in argv if word != "--verbose")]
    try:
        language.check()
        result = _command(argv)(args=argv, prog_name="airbundle", standalone_mode=False)
    except BundlerError as error:
        return _report(error, argv)
    except KeyboardInterrupt:
        return _interrupted()
    except OSError as error:
        # An adapter that missed one: still one line rather than a traceback.
        where = f"{error.filename}: " if error.filename else ""
        return _report(FileAccessError(f"{where}{error.strerror or error}"), argv)
    except Exception as error:
        # Typer's own usage errors: they know how to show themselves.
        show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
        if callable(show) and isinstance(code, int):
            _show_usage(error, show)
            return code
        if type(error).__name__ == "Abort":
            return _interrupted()
        raise
    if result == EXIT_INTERRUPTED:
        # Typer turns Ctrl-C inside a command into this code, without a word.
        return _interrupted()
    return result if isinstance(result, int) else 0


def _command(argv: list[str]) -> Callable[..., object]:
    """The command line, with help in the reader's language."""
    app = make_app(argv)
    if not OUT.korean:
        return app
    from bundler.cli.korean.helping import in_korean

    korean: Callable[..., object] = in_korean(typer.main.get_command(app))
    return korean


def _show_usage(error: Exception, show: Callable[[], object]) -> None:
    """A usage error, as Typer shows it or in Korean. No message: the help is shown already."""
    if not ERR.korean or not hasattr(error, "ctx") or type(error).__name__ == "NoArgsIsHelpError":
        show()
        return
    from bundler.cli.korean.helping import usage_lines

    for line in usage_lines(error):
        ERR.verbatim(line)


def _interrupted() -> int:
    ERR.line("interrupted: run the same command again to continue", style="yellow")
    return EXIT_INTERRUPTED


def _report(error: BundlerError, argv: list[str]) -> int:
    if "--verbose" in argv:
        logging.getLogger(__name__).exception("traceback")
    # What an engine said last is its own words.
    detail = ERR.verbatim if isinstance(error, EngineError) else ERR.line
    for line in error.details:
        detail(f"  {line}", style="dim")
    ERR.line(f"error: {ERR.spoken(str(error))}", style="bold red")
    if error.hint:
        ERR.line(f"hint: {ERR.spoken(error.hint)}")
    if "--json" in argv:
        show_json(
            {
                "error": str(error),
                "kind": type(error).__name__,
                "hint": error.hint,
                "details": list(error.details),
                "exit_code": error.exit_code,
            }
        )
    return error.exit_code
