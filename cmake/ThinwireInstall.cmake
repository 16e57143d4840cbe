# What `cmake --install` lays down, so that find_package(thinwire) works outside.
