#include "thinwire/comm/rendezvous.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "thinwire/base/clock.hpp"
#include "thinwire/comm/network.hpp"
#include "thinwire/comm/process_state.hpp"

namespace thinwire::comm {
namespace {

constexpr const char* kPlace = "comm::init_from_env";
constexpr std::chrono::milliseconds kPoll(20);

std::string random_text() {
  std::random_device source;
  return std::to_string((std::uint64_t{source()} << 32) | source());
}

// How often this process has met others before; the same on all ranks of a job.
int next_epoch() {
  static std::atomic<int> epoch{0};
  return epoch++;
}

std::string encode(const Error& error) {
  return std::to_string(static_cast<int>(error.code())) + " " + error.what();
}

Error decode_error(const std::string& text) {
  const std::size_t space = text.find(' ');
  return Error(static_cast<ErrorCode>(std::atoi(text.substr(0, space).c_str())), text.substr(space + 1));
}

std::string describe(const StoreAddress& address) {
  return address.host + ":" + std::to_string(address.port);
}

// Tries until it works or the time is up; what cannot get better fails at once.
std::unique_ptr<Store> reach_store(const StoreAddress& address, std::int64_t timeout_ms, const std::string& me) {
  const Deadline deadline = Deadline::in_ms(timeout_ms);
  std::string reason;
  while (!deadline.passed()) {
    const auto left_ms = std::max<std::int64_t>(static_cast<std::int64_t>(deadline.remaining_s() * 1000), 1);
    reason = why_unreachable(address.host, address.port, std::min<std::int64_t>(left_ms, 2'000));
    if (reason.empty()) {
      try {
        return connect_store(address, left_ms, reply_timeout_ms(timeout_ms));
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kMismatch) throw;
        reason = error.what();
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  fail(ErrorCode::kTimeout,
       {.place = kPlace,
        .what = me + " found no store at " + describe(address) + " (MASTER_ADDR, MASTER_PORT) within " +
                in_seconds(timeout_ms),
        .got = reason,
        .want = "",
        .hint = "the address of the host on which rank 0 runs, and see whether rank 0 has started"});
}

std::string name_of(const EnvSettings& env) {
  return "rank " + std::to_string(env.rank) + " (host " + host_name() + ", pid " + std::to_string(getpid()) + ")";
}

}  // namespace

std::int64_t reply_timeout_ms(std::int64_t timeout_ms) {
  return std::max<std::int64_t>(timeout_ms / 5, 2'000) + 1'000;
}

Rendezvous::Rendezvous(const RendezvousSettings& settings, std::unique_ptr<Store> store, std::string prefix)
    : settings_(settings),
      deadline_(Deadline::in_ms(settings.timeout_ms)),
      store_(std::move(store)),
      prefix_(std::move(prefix)),
      epoch_(next_epoch()),
      nonce_(random_text()),
      me_(name_of(settings.env)) {}

Rendezvous::Rendezvous(const RendezvousSettings& settings)
    : settings_(settings),
      deadline_(Deadline::in_ms(settings.timeout_ms)),
      address_{settings.env.host, settings.env.port},
      epoch_(next_epoch()),
      nonce_(random_text()),
      me_(name_of(settings.env)) {
  if (settings_.env.rank == 0 && !settings_.env.agent_hosts_store) {
    hosted_ = host_store(address_.port);
    address_.host = "127.0.0.1";  // MASTER_ADDR may be a name by which only the others know this host
  }
  store_ = reach_store(address_, settings_.timeout_ms, me_);
}

// A store that goes away before all have met may be the last one of a world that rank 0 is just giving up; the next one
// will be at the same address.
std::vector<RankCard> Rendezvous::join() {
  for (;;) {
    try {
      return join_once();
    } catch (const Error& error) {
      const bool lost = error.code() == ErrorCode::kPeerFailure && !reported_;
      if (!lost || hosted_ || address_.port == 0 || deadline_.passed()) throw;
    }
    prefix_.clear();
    store_ = reach_store(address_, static_cast<std::int64_t>(deadline_.remaining_s() * 1000) + 1, me_);
    store_->limit_waits(reply_timeout_ms(settings_.timeout_ms));
  }
}

std::vector<RankCard> Rendezvous::join_once() {
  if (prefix_.empty()) enter_job();
  throw_reported();
  check_size();
  reserve_descriptors(2, settings_.env.size);
  const RankCard card = make_card();
  claim_rank(card);
  std::vector<RankCard> cards;
  for (const std::string& text : gather("rank", encode(card))) cards.push_back(decode_card(text));
  check_timeouts(cards);
  leave_loopback(cards);
  deadline_ = Deadline::in_ms(settings_.timeout_ms / 2);  // what follows is among ranks that are there
  return cards;
}

// Rank 0 alone says whose store this is. A stray rank of another job must not disturb this one: it leaves without a
// report.
void Rendezvous::enter_job() {
  const EnvSettings& env = settings_.env;
  const std::string key = "thinwire/" + env.restart + "/job";
  const std::string mine = env.job_id.empty() ? "" : "job " + env.job_id;
  std::string held;
  if (env.rank == 0) {
    held = store_->set_if_absent(key, mine.empty() ? "unnamed job " + random_text() : mine);
  } else {
    while (!store_->contains({key}) && !deadline_.passed()) std::this_thread::sleep_for(kPoll);
    held = store_->read({key})[0].value_or("");
  }
  if (held.empty())
    fail(ErrorCode::kTimeout, {.place = kPlace,
                               .what = me_ + " reached " + store_name() + ", but within " +
                                       in_seconds(settings_.timeout_ms) + " rank 0 did not arrive",
                               .got = "",
                               .want = "",
                               .hint = "the log of rank 0"});
  if (!mine.empty() && held != mine)
    fail(ErrorCode::kMismatch, {.place = kPlace,
                                .what = store_name() + " belongs to another job; " + me_,
                                .got = held,
                                .want = mine,
                                .hint = "another MASTER_PORT for one of the two"});
  prefix_ = "thinwire/" + env.restart + "/" + held + "/e" + std::to_string(epoch_) + "/";
}

void Rendezvous::check_size() {
  const EnvSettings& env = settings_.env;
  const std::string mine = std::to_string(env.size);
  const std::string held = store_->set_if_absent(prefix_ + "size", mine + " at " + me_);
  if (held.substr(0, held.find(' ')) != mine)
    fail(ErrorCode::kMismatch, {.place = kPlace,
                                .what = "world sizes differ between ranks",
                                .got = mine + " at " + me_ + " and " + held,
                                .want = "the same WORLD_SIZE on all",
                                .hint = ""});
  if (env.rank >= env.size)
    fail(ErrorCode::kInvalidArgument, {.place = kPlace,
                                       .what = "rank of " + me_,
                                       .got = std::to_string(env.rank) + " in a world of " + mine,
                                       .want = "0 to " + std::to_string(env.size - 1),
                                       .hint = "RANK and WORLD_SIZE of the same launcher"});
}

std::string Rendezvous::choose_address() const {
  if (!settings_.interface.empty()) return address_of_interface(settings_.interface);
  const auto address = address_towards(settings_.env.host);
  return address ? *address : "127.0.0.1";
}

RankCard Rendezvous::make_card() const {
  RankCard card{.host = host_name(),
                .pid = getpid(),
                .identity = host_identity(),
                .address = choose_address(),
                .nonce = nonce_,
                .spare_address = "",
                .timeout_ms = settings_.timeout_ms};
  // Some launchers tell rank 0 that the store is at "localhost". Any address outside shows the default route.
  if (settings_.interface.empty() && is_loopback(card.address))
    if (const auto outside = address_towards("192.0.2.1"); outside && !is_loopback(*outside))
      card.spare_address = *outside;
  return card;
}

void Rendezvous::claim_rank(const RankCard& card) {
  const std::string rank = std::to_string(settings_.env.rank);
  const RankCard held = decode_card(store_->set_if_absent(prefix_ + "rank/" + rank, encode(card)));
  if (held.nonce == card.nonce) return;
  duplicate_ = true;
  fail(ErrorCode::kMismatch, {.place = kPlace,
                              .what = "rank " + rank + " was given twice",
                              .got = describe(card) + " and " + describe(held),
                              .want = "each rank once",
                              .hint = "a RANK of its own for each process, and no second job on MASTER_PORT"});
}

std::string Rendezvous::store_name() const {
  if (address_.port == 0) return "the given store";
  return "the store at " + describe(StoreAddress{settings_.env.host, address_.port});  // as all ranks know it
}

std::vector<std::string> Rendezvous::keys(const std::string& name) const {
  std::vector<std::string> keys;
  for (int rank = 0; rank < settings_.env.size; ++rank) keys.push_back(prefix_ + name + "/" + std::to_string(rank));
  return keys;
}

std::vector<std::string> Rendezvous::gather(const std::string& key, const std::string& value) {
  const std::vector<std::string> wanted = keys(key);
  store_->set(wanted[static_cast<std::size_t>(settings_.env.rank)], value);
  while (!store_->contains(wanted)) {
    throw_reported();
    if (deadline_.passed()) break;
    std::this_thread::sleep_for(kPoll);
  }
  const auto found = store_->read(wanted);
  std::vector<std::string> values;
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    if (!found[rank]) missing.push_back(static_cast<int>(rank));
    values.push_back(found[rank].value_or(""));
  }
  if (missing.empty()) return values;
  fail(ErrorCode::kTimeout, {.place = kPlace,
                             .what = std::string(missing.size() == 1 ? "rank " : "ranks ") + join_numbers(missing) +
                                     " of " + std::to_string(settings_.env.size) + " did not arrive within " +
                                     in_seconds(settings_.timeout_ms) + " at " + store_name(),
                             .got = "",
                             .want = "",
                             .hint = "their logs, their MASTER_ADDR and MASTER_PORT, or a longer THINWIRE_TIMEOUT_S"});
}

void Rendezvous::throw_reported() {
  const std::string key = prefix_ + "error";
  if (!store_->contains({key})) return;
  const std::string text = store_->read({key})[0].value_or("0 ");
  acknowledge();
  reported_ = decode_error(text);
  if (hosted_) linger(reported_->code());
  throw *reported_;
}

Error Rendezvous::report(const Error& error) {
  if (reported_) return *reported_;
  const std::string what = error.what();
  const Error mine(error.code(), what.find(me_) == std::string::npos ? what + " (reported by " + me_ + ")" : what);
  if (prefix_.empty()) return mine;
  try {
    const std::string text = encode(mine);
    const std::string held = store_->set_if_absent(prefix_ + "error", text);
    acknowledge();
    if (hosted_) linger(mine.code());
    return held == text ? mine : decode_error(held);
  } catch (const Error&) {
    return mine;  // the store has gone as well; what this rank saw first says more
  }
}

// Ranks that are only starting must find the report too, unless it is about those that never come.
void Rendezvous::linger(ErrorCode code) {
  const Deadline deadline = Deadline::in_ms(std::min<std::int64_t>(settings_.timeout_ms / 3, 2'000));
  const auto arrived = store_->read(keys("rank"));
  std::vector<std::string> acknowledgements;
  for (std::size_t rank = 0; rank < arrived.size(); ++rank)
    if (arrived[rank] || code != ErrorCode::kTimeout)
      acknowledgements.push_back(prefix_ + "seen/" + std::to_string(rank));
  while (!store_->contains(acknowledgements) && !deadline.passed()) std::this_thread::sleep_for(kPoll);
}

void Rendezvous::acknowledge() {
  if (!duplicate_) store_->set(prefix_ + "seen/" + std::to_string(settings_.env.rank), "1");
}

}  // namespace thinwire::comm
