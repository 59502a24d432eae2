-- Broken: installs an extension.
install httpfs
