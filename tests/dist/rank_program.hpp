// What the programs that the fault harness starts have in common: they tell how they ended and what they left behind.
#pragma once

#include <functional>
#include <string>

namespace thinwire::testing_faults {

// Runs `body`, then prints "DONE" or "ERROR <code>: <text>", then "LEFT <threads> <sockets>".
// Returns the exit status: 0, or 3 after an Error.
int run_rank(const std::function<void()>& body);

// "ready" on a line of its own, then the fault: kill | stop | sleep:SECONDS | write (to a connection whose other end
// has gone) | throw (an Error that has nothing to do with the other ranks) | anything else: nothing.
void meet_fault(const std::string& action);

}  // namespace thinwire::testing_faults
