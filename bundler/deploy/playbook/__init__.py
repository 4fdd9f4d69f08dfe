"""The rollout to many hosts as an Ansible playbook: `airbundle.yml` beside this file, and its variables."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import yaml

_INVENTORY = """\
# The hosts to roll out to: https://docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html
[llm]
# gpu-1 ansible_host=10.0.0.11 ansible_user=llm
"""
_EXPLAINED = {
    "airbundle_id": "The bundle.",
    "airbundle_root": "Where it is installed, on every host.",
    "airbundle_folder": "Where the bundle lies on the hosts: a mounted share or stick, or where it is copied to.",
    "airbundle_source": "Folder of the bundle on this machine, to be copied; empty when airbundle_folder has it already.",
    "airbundle_key": "The supplier's public key on the hosts.",
    "airbundle_key_source": "The key on this machine, to be copied; empty when it is there already.",
    "airbundle_reports": "Folder on this machine that gets each host's report.",
    "airbundle_preflight": "Stop at a host that lacks what the bundle needs.",
    "airbundle_serial": "How many hosts at once.",
}


def playbook_files(root: Path, bundle_id: str) -> dict[str, str]:
    """File name -> text: playbook, variables, and an inventory to fill in."""
    values = {
        "airbundle_id": bundle_id,
        "airbundle_root": str(root),
        "airbundle_folder": f"{root}/incoming/{bundle_id}",
        "airbundle_source": "",
        "airbundle_key": f"{root}/incoming/supplier.pub.pem",
        "airbundle_key_source": "",
        "airbundle_reports": "reports",
        "airbundle_preflight": True,
        "airbundle_serial": 1,
    }
    lines = [
        f"# {_EXPLAINED[name]}\n{yaml.safe_dump({name: value}, allow_unicode=True)}"
        for name, value in values.items()
    ]
    playbook = files(__package__).joinpath("airbundle.yml").read_text(encoding="utf-8")
    return {
        "airbundle.yml": playbook,
        "airbundle.vars.yml": "".join(lines),
        "inventory.ini": _INVENTORY,
    }
