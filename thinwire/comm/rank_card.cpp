#include "thinwire/comm/rank_card.hpp"

#include <cstddef>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "thinwire/base/error.hpp"
#include "thinwire/comm/network.hpp"

namespace thinwire::comm {
namespace {

constexpr const char* kPlace = "comm::init_from_env";

}  // namespace

std::string encode(const RankCard& card) {
  return card.host + '\n' + std::to_string(card.pid) + '\n' + card.identity + '\n' + card.address + '\n' + card.nonce +
         '\n' + card.spare_address + '\n' + std::to_string(card.timeout_ms);
}

RankCard decode_card(const std::string& text) {
  std::istringstream lines(text);
  RankCard card;
  std::string pid, timeout_ms;
  for (std::string* field :
       {&card.host, &pid, &card.identity, &card.address, &card.nonce, &card.spare_address, &timeout_ms})
    std::getline(lines, *field);
  card.pid = std::atoll(pid.c_str());
  card.timeout_ms = std::atoll(timeout_ms.c_str());
  return card;
}

std::string describe(const RankCard& card) {
  return "host " + card.host + ", pid " + std::to_string(card.pid);
}

std::string in_seconds(std::int64_t milliseconds) {
  std::ostringstream text;
  text << static_cast<double>(milliseconds) / 1000 << " s";
  return text.str();
}

std::string join_numbers(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

void check_timeouts(const std::vector<RankCard>& cards) {
  std::map<std::int64_t, std::vector<int>> ranks_with;
  for (std::size_t rank = 0; rank < cards.size(); ++rank)
    ranks_with[cards[rank].timeout_ms].push_back(static_cast<int>(rank));
  if (ranks_with.size() <= 1) return;
  std::string got;
  for (const auto& [timeout_ms, ranks] : ranks_with)
    got += (got.empty() ? "" : " and ") + in_seconds(timeout_ms) + (ranks.size() == 1 ? " on rank " : " on ranks ") +
           join_numbers(ranks);
  fail(ErrorCode::kMismatch, {.place = kPlace,
                              .what = "timeouts differ between ranks",
                              .got = got,
                              .want = "the same THINWIRE_TIMEOUT_S or InitSettings::timeout_ms on all",
                              .hint = ""});
}

void leave_loopback(std::vector<RankCard>& cards) {
  std::set<std::string> hosts;
  for (const RankCard& card : cards) hosts.insert(card.identity);
  if (hosts.size() == 1) return;
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    RankCard& card = cards[rank];
    if (!is_loopback(card.address)) continue;
    if (card.spare_address.empty())
      fail(ErrorCode::kMismatch, {.place = kPlace,
                                  .what = "rank " + std::to_string(rank) + " (" + describe(card) +
                                          ") listens on loopback, where ranks on other hosts cannot reach it",
                                  .got = "address " + card.address,
                                  .want = "an address of a network between the hosts",
                                  .hint = "GLOO_SOCKET_IFNAME with that network's interface"});
    card.address = card.spare_address;
  }
}

}  // namespace thinwire::comm
