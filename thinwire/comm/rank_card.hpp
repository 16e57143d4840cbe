// What a rank tells the others about itself when they meet, and what must be true of the cards of all. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace thinwire::comm {

struct RankCard {
  std::string host;  // name, for messages
  std::int64_t pid = 0;
  std::string identity;         // equal: same host (network.hpp)
  std::string address;          // its groups listen here
  std::string nonce;            // tells two processes that claim the same rank apart
  std::string spare_address;    // for when `address` is loopback and there are other hosts; empty: none
  std::int64_t timeout_ms = 0;  // T
};

// As a value in the store, and back.
std::string encode(const RankCard& card);
RankCard decode_card(const std::string& text);

// "host b, pid 4711"
std::string describe(const RankCard& card);

// "2.5 s"
std::string in_seconds(std::int64_t milliseconds);

// "0, 2, 5"
std::string join_numbers(const std::vector<int>& numbers);

// `cards` in rank order. Throws Error kMismatch, with every value and its ranks, unless all wait equally long: else one
// rank gives up on the others while these still wait for it.
void check_timeouts(const std::vector<RankCard>& cards);

// Where the ranks are on several hosts no loopback address reaches: puts the spare one in its place. Throws Error
// kMismatch that names the rank which has none.
void leave_loopback(std::vector<RankCard>& cards);

}  // namespace thinwire::comm
