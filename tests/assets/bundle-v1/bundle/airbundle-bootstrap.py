# the bootstrap
