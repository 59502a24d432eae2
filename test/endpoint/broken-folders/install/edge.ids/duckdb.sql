-- Broken: loads code.
install httpfs
