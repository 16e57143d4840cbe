// The verbs of the command: each parses its own arguments, calls the library and prints. They return the exit status:
// 0, 1 (it failed), 2 (wrong usage), or the status of what they ran.
#pragma once

#include <string>
#include <vector>

namespace thinwire::cli {

using Arguments = std::vector<std::string>;  // without the program and the verb

int run_verb(const Arguments& arguments);
int bench_step_verb(const Arguments& arguments);
int bench_codec_verb(const Arguments& arguments);
int codec_verb(const Arguments& arguments);

// The whole command; `arguments` without the program. Catches everything.
int command_main(const Arguments& arguments);

// What `thinwire --version` prints.
std::string version_text();

}  // namespace thinwire::cli
