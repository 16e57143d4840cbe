#include "thinwire/comm/rank_card.hpp"

#include <gtest/gtest.h>

#include <string>

#include "thinwire/base/error.hpp"

namespace thinwire::comm {
namespace {

RankCard card(const std::string& identity, const std::string& address, const std::string& spare = "") {
  return {.host = "host of " + identity,
          .pid = 4711,
          .identity = identity,
          .address = address,
          .nonce = "n",
          .spare_address = spare,
          .timeout_ms = 300'000};
}

std::string refusal(void (*check)(std::vector<RankCard>&), std::vector<RankCard> cards) {
  try {
    check(cards);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    return error.what();
  }
  return "accepted";
}

TEST(RankCard, ComesBackFromTheStoreAsItWas) {
  const RankCard sent{"b", 4711, "boot/1", "10.0.0.2", "99", "10.0.0.3", 2'500};
  const RankCard got = decode_card(encode(sent));
  EXPECT_EQ(got.host, sent.host);
  EXPECT_EQ(got.pid, sent.pid);
  EXPECT_EQ(got.identity, sent.identity);
  EXPECT_EQ(got.address, sent.address);
  EXPECT_EQ(got.nonce, sent.nonce);
  EXPECT_EQ(got.spare_address, sent.spare_address);
  EXPECT_EQ(got.timeout_ms, sent.timeout_ms);
  RankCard nameless;
  nameless.nonce = "1";
  EXPECT_EQ(decode_card(encode(nameless)).nonce, "1");
}

TEST(RankCards, LoopbackOnOneHostIsFine) {
  std::vector<RankCard> cards{card("a", "127.0.0.1"), card("a", "127.0.1.1", "10.0.0.1")};
  leave_loopback(cards);
  EXPECT_EQ(cards[0].address, "127.0.0.1");
  EXPECT_EQ(cards[1].address, "127.0.1.1");
}

TEST(RankCards, LoopbackBetweenHostsIsRefused) {
  for (const char* loopback : {"127.0.0.1", "127.0.1.1", "::1"})
    EXPECT_EQ(refusal(leave_loopback, {card("a", "10.0.0.1"), card("b", loopback), card("b", loopback)}),
              std::string("[comm::init_from_env] rank 1 (host host of b, pid 4711) listens on loopback, where ranks on "
                          "other hosts cannot reach it; got address ") +
                  loopback +
                  ", want an address of a network between the hosts; try GLOO_SOCKET_IFNAME with that network's "
                  "interface");
}

// A launcher told rank 0 that the store is at "localhost".
TEST(RankCards, LoopbackBetweenHostsGivesWayToASpareAddress) {
  std::vector<RankCard> cards{card("a", "127.0.0.1", "10.0.0.1"), card("b", "10.0.0.2", "10.9.9.9")};
  leave_loopback(cards);
  EXPECT_EQ(cards[0].address, "10.0.0.1");
  EXPECT_EQ(cards[1].address, "10.0.0.2");
}

TEST(RankCards, TimeoutsThatDifferAreNamedWithTheirRanks) {
  std::vector<RankCard> cards(4, card("a", "10.0.0.1"));
  check_timeouts(cards);
  cards[2].timeout_ms = 2'500;
  EXPECT_EQ(refusal([](std::vector<RankCard>& all) { check_timeouts(all); }, cards),
            "[comm::init_from_env] timeouts differ between ranks; got 2.5 s on rank 2 and 300 s on ranks 0, 1, 3, want "
            "the same THINWIRE_TIMEOUT_S or InitSettings::timeout_ms on all");
}

}  // namespace
}  // namespace thinwire::comm
