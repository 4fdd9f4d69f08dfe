"""The command line: parse, wire, call, print."""
