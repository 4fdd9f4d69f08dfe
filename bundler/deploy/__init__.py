"""The closed half: verify, import, install, launch."""
