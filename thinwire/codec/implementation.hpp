// Which code does the work: "scalar", or the instruction set that the kernels were compiled for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace thinwire::codec {

// Those that this machine can run, the best last: {"scalar", "sse4", "avx2", "avx512"}.
std::vector<std::string> implementations();

// The one in use; at first the best. All give the same bits.
std::string implementation();

// For tests and the bench. Not thread safe: no codec may be at work. Throws Error kInvalidArgument for a name that
// implementations() lacks.
void choose_implementation(std::string_view name);

bool scalar_is_chosen();

}  // namespace thinwire::codec
