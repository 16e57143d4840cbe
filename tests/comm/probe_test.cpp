#include "thinwire/comm/probe.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "thinwire/comm/probe_listener.hpp"
#include "thinwire/comm/probe_socket.hpp"
#include "thinwire/comm/probe_wire.hpp"

namespace thinwire::comm {
namespace {

constexpr std::int64_t kLong_ms = 10'000;  // far above what an answer takes, so that only a hang can reach it

// A listener served by a thread, echoing what it is asked.
class Served {
 public:
  Served()
      : listener_("127.0.0.1", [](const Request& request) { return "heard " + request.text; }), thread_([this] {
          while (!stop_) listener_.serve(5);
        }) {}
  ~Served() {
    stop_ = true;
    thread_.join();
  }
  Endpoint endpoint() const { return {0, "127.0.0.1", listener_.port(), listener_.nonce(), 1, "here"}; }

 private:
  std::atomic<bool> stop_{false};
  ProbeListener listener_;
  std::thread thread_;
};

Answer ask_one(const Endpoint& endpoint, const Request& request, std::int64_t limit_ms = kLong_ms) {
  return ask(std::vector<Endpoint>{endpoint}, request, limit_ms).front();
}

FileDescriptor connect_raw(const Endpoint& to) {
  const SocketAddress address = socket_address(to.address, to.port);
  FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length), 0);
  return fd;
}

void send_raw(const FileDescriptor& fd, const std::string& bytes) {
  (void)!::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

RankState some_state() {
  return {3, 4711, "node_b", 17, 200, 2, 1, Phase::kEncoding, "broadcast of parameters", Failed::kTimeout, 4321};
}

TEST(ProbeLines, ComeBackAsTheyWere) {
  const RankState state = some_state();
  const auto back = parse_rank_state(to_line(state));
  ASSERT_TRUE(back);
  EXPECT_EQ(to_line(*back), to_line(state));
  EXPECT_EQ(back->host, "node_b");
  EXPECT_EQ(back->operation, "broadcast of parameters");
  EXPECT_EQ(back->phase, Phase::kEncoding);
  EXPECT_EQ(back->failed, Failed::kTimeout);
  EXPECT_EQ(back->gap_ms, 4321);
  const Endpoint endpoint{1, "fe80::1%eth0", 65535, 0xDEADBEEF01234567ULL, 99, ""};
  const auto there = parse_endpoint(to_line(endpoint));
  ASSERT_TRUE(there);
  EXPECT_EQ(there->address, "fe80::1%eth0");
  EXPECT_EQ(there->nonce, 0xDEADBEEF01234567ULL);
  EXPECT_EQ(there->host, "");
}

TEST(ProbeLines, NoPrefixAndNoForeignNumberParses) {
  const std::string line = to_line(some_state());
  const std::size_t last_field = line.rfind('=') + 1;
  for (std::size_t length = 0; length <= last_field; ++length)
    EXPECT_FALSE(parse_rank_state(line.substr(0, length))) << length;
  for (const char* bad : {"rank=x", "rank=-2", "rank=99999999999999999999", "rank="})
    EXPECT_FALSE(parse_rank_state(bad + line.substr(line.find(' ')))) << bad;
  EXPECT_FALSE(parse_rank_state(line + " more=1"));
}

TEST(ProbeLines, NamesCannotBreakTheLine) {
  RankState state = some_state();
  state.host = "evil host\nrank=7";
  const auto back = parse_rank_state(to_line(state));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->rank, 3);
  EXPECT_EQ(to_line(state).find('\n'), std::string::npos);
}

TEST(ProbeWire, ArrivesOnlyWhenCompleteWhateverTheCuts) {
  const std::string bytes = encode_request(42, {RequestKind::kSettle, 5, "text with\nlines"});
  Request request;
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_EQ(parse_request(bytes.substr(0, length), 42, &request), Parsed::kIncomplete) << length;
  EXPECT_EQ(parse_request(bytes, 42, &request), Parsed::kComplete);
  EXPECT_EQ(request.kind, RequestKind::kSettle);
  EXPECT_EQ(request.from, 5);
  EXPECT_EQ(request.text, "text with\nlines");
  EXPECT_EQ(parse_request(bytes + "x", 42, &request), Parsed::kForeign);
  EXPECT_EQ(parse_request(bytes, 43, &request), Parsed::kForeign);
}

TEST(ProbeWire, RandomBytesAreNeverARequest) {
  std::mt19937 random(7);
  Request request;
  for (int round = 0; round < 2'000; ++round) {
    std::string bytes = encode_request(42, {RequestKind::kState, 1, "abc"});
    for (int change = 0; change < 3; ++change) bytes[random() % 20] = static_cast<char>(random());
    EXPECT_NE(parse_request(bytes, 43, &request), Parsed::kComplete);
  }
}

TEST(Probe, AnswersEveryoneAtOnce) {
  Served first, second;
  const std::vector<Endpoint> both{first.endpoint(), second.endpoint()};
  const auto answers = ask(both, {RequestKind::kState, 0, "you"}, kLong_ms);
  ASSERT_EQ(answers.size(), 2u);
  for (const Answer& answer : answers) {
    EXPECT_EQ(answer.reach, Reach::kAnswered);
    EXPECT_EQ(answer.text, "heard you");
  }
}

TEST(Probe, CarriesTheLongestTextAndCutsWhatIsLonger) {
  Served served;
  const std::string longest(kMaxProbeText, 'x');
  const Answer answer = ask_one(served.endpoint(), {RequestKind::kSettle, 0, longest + longest});
  EXPECT_EQ(answer.reach, Reach::kAnswered);
  EXPECT_EQ(answer.text, ("heard " + longest).substr(0, kMaxProbeText));
}

TEST(Probe, AClosedPortRefuses) {
  Endpoint endpoint{0, "127.0.0.1", 0, 1, 1, "here"};
  {
    const Listening listening = listen_on("127.0.0.1");
    endpoint.port = listening.port;
  }
  const Answer answer = ask_one(endpoint, {});
  EXPECT_EQ(answer.reach, Reach::kRefused);
  EXPECT_EQ(answer.detail, "connection refused");
}

TEST(Probe, AStoppedProcessIsSilent) {
  const Listening never_accepts = listen_on("127.0.0.1");
  const Answer answer = ask_one({0, "127.0.0.1", never_accepts.port, 1, 1, "here"}, {}, 200);
  EXPECT_EQ(answer.reach, Reach::kSilent);
}

TEST(Probe, ASilentPeerDoesNotDelayTheOthers) {
  const Listening never_accepts = listen_on("127.0.0.1");
  Served served;
  const std::vector<Endpoint> both{{0, "127.0.0.1", never_accepts.port, 1, 1, "here"}, served.endpoint()};
  const auto answers = ask(both, {}, 300);
  EXPECT_EQ(answers[0].reach, Reach::kSilent);
  EXPECT_EQ(answers[1].reach, Reach::kAnswered);
}

TEST(Probe, ATakenOverPortCountsAsEnded) {
  Served served;
  Endpoint endpoint = served.endpoint();
  ++endpoint.nonce;
  EXPECT_EQ(ask_one(endpoint, {}).reach, Reach::kRefused);
}

TEST(Probe, HostileClientsStarveNobody) {
  Served served;
  std::vector<FileDescriptor> open;
  for (int i = 0; i < 200; ++i) {
    open.push_back(connect_raw(served.endpoint()));
    if (i % 4 == 1) send_raw(open.back(), std::string(100'000, '\xff'));
    if (i % 4 == 2) send_raw(open.back(), "thinwire1 ");
    if (i % 4 == 3)
      send_raw(open.back(), encode_request(served.endpoint().nonce, {RequestKind::kSettle, 0, "abc"}).substr(0, 30));
    if (i % 20 == 0) {
      EXPECT_EQ(ask_one(served.endpoint(), {RequestKind::kState, 0, "you"}).text, "heard you") << i;
    }
  }
  EXPECT_EQ(ask_one(served.endpoint(), {RequestKind::kState, 0, "you"}).text, "heard you");
}

TEST(Probe, DescriptorsAreNotInherited) {
  const Listening listening = listen_on("127.0.0.1");
  EXPECT_NE(::fcntl(listening.fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Probe, LoopbackIsUpAndAForeignAddressIsNot) {
  EXPECT_TRUE(interface_is_up("127.0.0.1"));
  EXPECT_FALSE(interface_is_up("203.0.113.77"));
}

}  // namespace
}  // namespace thinwire::comm
