// Links of the launcher: rates, emulation, and real network namespaces where this process may make them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <set>

#include "tests/cli/command_line.hpp"
#include "thinwire/base/error.hpp"
#include "thinwire/cli/launch.hpp"
#include "thinwire/cli/link.hpp"
#include "thinwire/cli/link_rate.hpp"

namespace thinwire::cli {
namespace {

using testing::HasSubstr;

TEST(LinkRate, ReadsWhatTcReads) {
  EXPECT_EQ(link_bits_per_second("100mbit"), 1e8);
  EXPECT_EQ(link_bits_per_second("1gbit"), 1e9);
  EXPECT_EQ(link_bits_per_second("1.5gbit"), 1.5e9);
  EXPECT_EQ(link_bits_per_second("512kbit"), 512e3);
  EXPECT_EQ(link_bits_per_second("10mbps"), 8e7);
  EXPECT_EQ(link_bits_per_second("none"), 0);
}

TEST(LinkRate, RefusesWhatIsNoRate) {
  for (const char* text : {"fast", "100 mbit", "-1mbit", "0mbit", "1e999gbit", "mbit", "1gbitx", "nan", "infgbit"})
    EXPECT_THROW(link_bits_per_second(text), Error) << text;
}

TEST(LinkRate, IsPrintedForPeople) {
  EXPECT_EQ(readable_rate(1e9), "1 Gbit/s");
  EXPECT_EQ(readable_rate(1e8), "100 Mbit/s");
  EXPECT_EQ(readable_rate(1.5e9), "1.5 Gbit/s");
  EXPECT_EQ(readable_rate(0), "no limit");
}

TEST(Link, EmulatedTellsTheRanksTheRate) {
  const Ended ended = run_thinwire({"run", "-n", "2", "--link", "100mbit", "--link-mode", "emulated", "--", "sh", "-c",
                                    "echo $THINWIRE_EMULATED_LINK $GLOO_SOCKET_IFNAME"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, testing::StartsWith("link: 100 Mbit/s, emulated (asked for)\n"));
  EXPECT_THAT(ended.out, HasSubstr("[1] 100mbit lo\n"));
}

TEST(Link, AskedForReplacesTheOneOfTheEnvironment) {
  setenv("THINWIRE_EMULATED_LINK", "1mbit", 1);
  const auto seen_by_a_rank = [](std::vector<std::string> options) {
    std::vector<std::string> arguments{"run", "-n", "1"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    for (const char* word : {"--", "sh", "-c", "echo link=$THINWIRE_EMULATED_LINK."}) arguments.emplace_back(word);
    return run_thinwire(arguments).out;
  };
  EXPECT_THAT(seen_by_a_rank({}), HasSubstr("[0] link=1mbit.\n"));
  EXPECT_THAT(seen_by_a_rank({"--link", "none"}), HasSubstr("[0] link=.\n"));
  EXPECT_THAT(seen_by_a_rank({"--link", "2mbit", "--link-mode", "emulated"}), HasSubstr("[0] link=2mbit.\n"));
  EXPECT_THAT(seen_by_a_rank({"--link", "none", "--env", "THINWIRE_EMULATED_LINK=3mbit"}), HasSubstr("link=3mbit.\n"));
  unsetenv("THINWIRE_EMULATED_LINK");
}

TEST(Link, WithoutLimitAndNamespacesIsPlainLoopback) {
  const Link link = make_link(2, "none", LinkMode::kEmulated);
  EXPECT_FALSE(link.emulated);
  EXPECT_EQ(link.description, "no limit, loopback (asked for)");
  EXPECT_TRUE(link.variables(0).empty());
  EXPECT_TRUE(make_link(2, "none,1ms", LinkMode::kEmulated).emulated);
}

TEST(Link, WithALatencyIsEmulated) {
  const Link link = make_link(2, "1Gbit,0.25ms", LinkMode::kAuto);
  EXPECT_TRUE(link.emulated);
  EXPECT_EQ(link.description, "1 Gbit/s with 0.25 ms per message, emulated (network namespaces have no latency)");
  EXPECT_EQ(link.variables(0), (Variables{{"THINWIRE_EMULATED_LINK", "1Gbit,0.25ms"}}));
  EXPECT_EQ(make_link(2, "1gbit,50us", LinkMode::kEmulated).description,
            "1 Gbit/s with 0.05 ms per message, emulated (asked for)");
}

TEST(Link, FallsBackToEmulationAndSaysWhy) {
  const Link link = make_link(2, "1gbit", LinkMode::kAuto);
  if (why_no_netlab().empty()) {
    EXPECT_FALSE(link.emulated);
    // Without tc on the path the same call must emulate.
    const std::string path = std::getenv("PATH");
    setenv("PATH", "/nonexistent", 1);
    const Link without = make_link(2, "1gbit", LinkMode::kAuto);
    EXPECT_THROW(make_link(2, "1gbit", LinkMode::kNamespaces), Error);
    setenv("PATH", path.c_str(), 1);
    EXPECT_TRUE(without.emulated);
    EXPECT_EQ(without.description, "1 Gbit/s, emulated (no ip (apt-get install iproute2))");
  } else {
    EXPECT_TRUE(link.emulated);
    EXPECT_EQ(link.description, "1 Gbit/s, emulated (" + why_no_netlab() + ")");
  }
}

std::vector<std::string> all_namespaces() {
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/run/netns", none))
    found.push_back(entry.path().filename());
  return found;
}

bool exists(const std::string& name) {
  const std::vector<std::string> all = all_namespaces();
  return std::find(all.begin(), all.end(), name) != all.end();
}

// Those whose maker, the pid in their name, has ended: others may be running labs of their own.
std::set<std::string> orphaned_namespaces() {
  std::set<std::string> orphans;
  for (const std::string& name : all_namespaces()) {
    int pid = 0;
    if (std::sscanf(name.c_str(), "thinwire-%d.", &pid) == 1 && kill(pid, 0) != 0) orphans.insert(name);
  }
  return orphans;
}

class Namespaces : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = why_no_netlab();
    if (!why.empty()) GTEST_SKIP() << "no network namespaces: " << why;
    try {
      NetLab probe(1, "none");
    } catch (const Error& error) {
      GTEST_SKIP() << "no network namespaces: " << error.what();
    }
  }
};

TEST_F(Namespaces, ShapeWhatRanksSend) {
  // Rank 1 sends 1 MB of the transfer in one second's worth of link: bytes counted at the interface, time by the
  // receiver.
  const Ended ended = run_thinwire({"run", "-n", "2", "--link", "8mbit", "--", "python3", "-c", R"(
import os, socket, time
if os.environ["RANK"] == "0":
    server = socket.create_server((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    peer, begin, got = server.accept()[0], time.monotonic(), 0
    while part := peer.recv(65536): got += len(part)
    print("got", got, "slow" if time.monotonic() - begin > 0.7 else "fast")
else:
    for _ in range(100):
        try: s = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))); break
        except OSError: time.sleep(0.1)
    s.sendall(bytes(1_000_000)); s.close()
    time.sleep(1.5)
    sent = int(open("/sys/class/net/eth0/statistics/tx_bytes").read())
    print("sent", "right" if 1_000_000 < sent < 1_150_000 else sent)
)"});
  if (ended.status == 127) GTEST_SKIP() << "no python3 to send with";
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, testing::StartsWith("link: 8 Mbit/s, network namespaces (real TCP)\n"));
  EXPECT_THAT(ended.out, HasSubstr("[0] got 1000000 slow\n"));
  EXPECT_THAT(ended.out, HasSubstr("[1] sent right\n"));
}

TEST_F(Namespaces, TellRanksWhereTheyAre) {
  const Ended ended =
      run_thinwire({"run", "-n", "2", "--link", "none", "--", "sh", "-c",
                    "echo $MASTER_ADDR $GLOO_SOCKET_IFNAME $THINWIRE_LINK_INTERFACE $(ls /sys/class/net)"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, testing::StartsWith("link: no limit, network namespaces (real TCP)\n"));
  EXPECT_THAT(ended.out, HasSubstr("[1] 10.77.0.1 eth0 eth0 eth0 lo\n"));
}

TEST_F(Namespaces, AreGoneAfterwards) {
  std::vector<std::string> names;
  LaunchSettings settings;
  settings.ranks = 3;
  settings.link = "none";
  settings.command = {"sh", "-c", "exit $RANK"};
  settings.events.on_started = [&](const std::vector<pid_t>&, const Link& link) {
    names = link.lab->namespaces();
    for (const std::string& name : names) EXPECT_TRUE(exists(name)) << name;
  };
  EXPECT_NE(run_ranks(settings).status, 0);
  EXPECT_EQ(names.size(), 4u);
  for (const std::string& name : names) EXPECT_FALSE(exists(name)) << name;
}

TEST_F(Namespaces, AreGoneWhenTheProgramIsMissing) {
  const std::set<std::string> before = orphaned_namespaces();
  EXPECT_EQ(run_thinwire({"run", "-n", "2", "--link", "none", "--", "./nothing"}).status, 127);
  EXPECT_EQ(orphaned_namespaces(), before);
}

std::string namespace_of_rank_0(CommandLine& command) {
  const std::string out = command.wait_for("[0] at ") ? command.so_far() : "";
  const std::size_t begin = out.find("[0] at ") + 7;
  return out.substr(begin, out.find('\n', begin) - begin);
}

TEST_F(Namespaces, AreGoneAfterTheLauncherWasKilled) {
  CommandLine command(
      {"run", "-n", "1", "--link", "none", "--", "sh", "-c", "echo at $THINWIRE_LINK_NAMESPACE; sleep 300"});
  const std::string name = namespace_of_rank_0(command);
  ASSERT_TRUE(exists(name)) << name;
  kill(command.pid(), SIGKILL);
  EXPECT_TRUE(becomes_true([&] { return !exists(name); }));
}

TEST_F(Namespaces, OfDeadLaunchersAreRemovedAndOthersStay) {
  const std::string dead = "thinwire-" + std::to_string(getpid()) + ".0-0-0";  // our id, another start time
  const std::string other = "thinwire_test_other_" + std::to_string(getpid());
  ASSERT_EQ(std::system(("ip netns add " + dead + " && ip netns add " + other).c_str()), 0);
  {
    NetLab ours(1, "none");
    remove_stale_netlabs();
    EXPECT_TRUE(exists(ours.host(0)));
  }
  EXPECT_FALSE(exists(dead));
  EXPECT_TRUE(exists(other));
  ASSERT_EQ(std::system(("ip netns del " + other).c_str()), 0);
}

TEST_F(Namespaces, FailureNamesTheCommandAndWhatItSaid) {
  try {
    NetLab lab(1, "1furlong");
    FAIL() << "accepted a rate that is none";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("1furlong"));
  }
}

}  // namespace
}  // namespace thinwire::cli
