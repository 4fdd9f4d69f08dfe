"""`airbundle demo`: tiny models made on the spot, a loopback Hub, and the walk over the whole road."""
