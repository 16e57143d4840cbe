// What must be equal on every rank, and what is said when it is not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thinwire/comm/group.hpp"

namespace thinwire::train {

// Something that must be the same everywhere, as text: {"parameter blocks.0.weight", "[384, 384] float32"}.
struct Fact {
  std::string name;
  std::string value;
};

inline constexpr const char* kSameProgram = "starting every rank with the same program, model and flags";

// Collective. Compares a hash first, with messages of one size, so that no collective ever sees two sizes; only when it
// differs the texts travel. Throws Error kMismatch on every rank, naming the first fact that differs and each rank's
// value; `hint`: what to try then.
void require_same_on_all_ranks(comm::Group& group, const std::string& place, const std::vector<Fact>& facts,
                               const std::string& hint = kSameProgram);

// Collective. Every rank's text, by rank; they may differ in length. `what`, a literal, names it where a rank is
// missing.
std::vector<std::string> gather_texts(comm::Group& group, const std::string& mine, const char* what = "settings");

struct NamedHash {
  std::string name;  // of the tensor: "x of blocks.0.weight"
  std::uint64_t hash = 0;
};

// Collective. REQUIRES: the same names on every rank. Throws Error kMismatch naming the first tensor that differs and
// the ranks that disagree with the majority; with two ranks only that they differ.
void require_same_state(comm::Group& group, std::int64_t step, const std::vector<NamedHash>& hashes);

}  // namespace thinwire::train
