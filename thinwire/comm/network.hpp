// Names, addresses and interfaces of this host. Plain sockets; no Torch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace thinwire::comm {

std::string host_name();

// Equal for two processes exactly when loopback connects them: the kernel's boot and the network namespace.
std::string host_identity();

// Numeric addresses of a name; empty when it cannot be resolved.
std::vector<std::string> resolve(const std::string& host);

bool is_loopback(const std::string& numeric_address);

// The own address from which packets to `host` leave; loopback when `host` is. nullopt: no route, or no such name.
std::optional<std::string> address_towards(const std::string& host);

// The address of a network interface, IPv4 if it has one. Throws Error kNotFound that lists the interfaces.
std::string address_of_interface(const std::string& name);

// Empty when something accepts a connection at host:port within `limit_ms`, else why not, with the addresses tried.
std::string why_unreachable(const std::string& host, int port, std::int64_t limit_ms);

}  // namespace thinwire::comm
