#include "thinwire/cli/verbs.hpp"

int main(int argc, char** argv) {
  return thinwire::cli::command_main({argv + 1, argv + argc});
}
