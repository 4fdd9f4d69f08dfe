"""The one stdlib-only file that starts a closed host from nothing."""
