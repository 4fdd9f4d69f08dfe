"""The documentation as a site of plain files: read with any browser, without network and without server."""
