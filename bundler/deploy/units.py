"""A release's services as hardened systemd units, for the system or for one user's own manager.

Directives: systemd.exec(5), systemd.service(5), systemd.kill(5). A unit names the root and not the release, so that it
serves whatever is current after an upgrade or a rollback. Left out on purpose: MemoryDenyWriteExecute (engines compile),
PrivateDevices and DevicePolicy (GPUs), PrivateNetwork and IPAddressDeny (NCCL, clients), RestrictNamespaces with users'
managers of older systemd.
"""

from __future__ import annotations

from pathlib import Path

from bundler.domain.spec import Service
from bundler.errors import StateError

# What systemd's parser takes for itself in a path or word: systemd.syntax(7), "%%" in systemd.unit(5).
_SPECIAL = str.maketrans({"%": "%%", "\\": "\\\\", '"': '\\"', "$": "$$"})
_SYSTEM = """\
User={user}
ProtectSystem=strict
ProtectHome={home}
ReadWritePaths={root}
PrivateTmp=yes
ProtectProc=invisible
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
CapabilityBoundingSet=
AmbientCapabilities=
"""
_UNIT = """\
# Made by `airbundle export --format systemd`; see docs/launch.md.
[Unit]
Description=airbundle: {name}
After=network.target nvidia-persistenced.service
AssertPathExists={root}/current

[Service]
Type=exec
ExecStart={program} run {name} --to-log --root {root}
EnvironmentFile=-{root}/etc/{name}.env
WorkingDirectory={root}
Restart=on-failure
RestartSec=10
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec=40
SuccessExitStatus=143
LimitNOFILE=65536
LimitMEMLOCK=infinity
OOMPolicy=stop
UMask=0077
{system}NoNewPrivileges=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_IB

[Install]
WantedBy={target}
"""
_ENV = """\
# Environment of {name}, read by systemd. What is passed on to the engine: PATH, LANG, TZ, TMPDIR and the variables that
# begin with CUDA_, NVIDIA_, NCCL_, GLOO_, UCX_, OMP_, VK_, OPENBLAS_, and LD_LIBRARY_PATH. Settings of the engine belong into the
# bundle's spec: there they are signed.
#NCCL_SOCKET_IFNAME=eth0
"""


def unit_files(
    root: Path, services: tuple[Service, ...], *, user: str, for_user_manager: bool
) -> dict[str, str]:
    """File name -> text: a unit for each service, and below `etc/` its environment file.

    Args:
        root: the installation root, absolute.
        services: of the release in use; their names stay when it changes.
        user: who the system's units run as; not used for a user's own manager.
        for_user_manager: `systemctl --user`, which may not do what needs root.

    Raises:
        StateError: the root's path cannot be written into a unit.
    """
    if any(ord(letter) < 32 or letter.isspace() for letter in str(root)):
        raise StateError(
            f"{root}: a path with white space cannot be named in every line of a unit",
            hint="Install below a folder without it.",
        )
    place = str(root).translate(_SPECIAL)
    under_home = root.is_relative_to("/home") or root.is_relative_to("/root")
    system = _SYSTEM.format(user=user, root=place, home="no" if under_home else "yes")
    files: dict[str, str] = {}
    for service in services:
        files[f"airbundle-{service.name}.service"] = _UNIT.format(
            name=service.name,
            root=place,
            program=f"{place}/bin/airbundle",
            system="" if for_user_manager else system,
            target="default.target" if for_user_manager else "multi-user.target",
        )
        files[f"etc/{service.name}.env"] = _ENV.format(name=service.name)
    return files
