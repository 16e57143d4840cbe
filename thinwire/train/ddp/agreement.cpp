#include "thinwire/train/ddp/agreement.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "thinwire/base/error.hpp"
#include "thinwire/base/hash.hpp"

namespace thinwire::train {
namespace {

// All ranks' words, rank by rank.
std::vector<std::vector<std::int64_t>> gather_words(comm::Group& group, const std::vector<std::int64_t>& mine,
                                                    const char* what) {
  const auto count = static_cast<std::int64_t>(mine.size());
  const at::Tensor in = at::empty({count}, at::TensorOptions().dtype(at::kLong));
  const at::Tensor out = at::empty({count * group.size()}, at::TensorOptions().dtype(at::kLong));
  std::copy(mine.begin(), mine.end(), in.mutable_data_ptr<std::int64_t>());
  group.all_gather(out, in, {what})->wait();
  std::vector<std::vector<std::int64_t>> all;
  const std::int64_t* words = out.const_data_ptr<std::int64_t>();
  for (int rank = 0; rank < group.size(); ++rank) all.emplace_back(words + rank * count, words + (rank + 1) * count);
  return all;
}

std::string joined(const std::vector<Fact>& facts) {
  std::string text;
  for (const Fact& fact : facts) text += fact.name + '\x1f' + fact.value + '\x1e';
  return text;
}

std::vector<Fact> split(const std::string& text) {
  std::vector<Fact> facts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t middle = text.find('\x1f', at);
    const std::size_t end = text.find('\x1e', middle);
    facts.push_back({text.substr(at, middle - at), text.substr(middle + 1, end - middle - 1)});
    at = end + 1;
  }
  return facts;
}

std::string shown(const std::vector<Fact>& facts, std::size_t i) {
  return i < facts.size() ? facts[i].name + " = " + facts[i].value : "nothing";
}

[[noreturn]] void report_difference(const std::string& place, const std::vector<std::string>& texts,
                                    const std::string& hint) {
  std::vector<std::vector<Fact>> all;
  for (const std::string& text : texts) all.push_back(split(text));
  std::size_t first = 0;
  const auto same = [&](std::size_t i) {
    return std::all_of(all.begin(), all.end(), [&](const auto& facts) { return shown(facts, i) == shown(all[0], i); });
  };
  while (same(first)) ++first;
  std::string got;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    got += (rank == 0 ? "rank " : "; rank ") + std::to_string(rank) + ": " + shown(all[rank], first);
  }
  const auto has = std::find_if(all.begin(), all.end(), [&](const auto& facts) { return first < facts.size(); });
  fail(ErrorCode::kMismatch,
       {place, (*has)[first].name + " differs between ranks", got, "the same on every rank", hint});
}

}  // namespace

std::vector<std::string> gather_texts(comm::Group& group, const std::string& mine, const char* what) {
  std::vector<std::int64_t> lengths;
  std::int64_t longest = 1;
  for (const auto& words : gather_words(group, {static_cast<std::int64_t>(mine.size())}, what)) {
    lengths.push_back(words[0]);
    longest = std::max(longest, words[0]);
  }
  const at::Tensor in = at::zeros({longest}, at::TensorOptions().dtype(at::kByte));
  const at::Tensor out = at::empty({longest * group.size()}, at::TensorOptions().dtype(at::kByte));
  std::memcpy(in.mutable_data_ptr(), mine.data(), mine.size());
  group.all_gather(out, in, {what})->wait();
  std::vector<std::string> texts;
  for (int rank = 0; rank < group.size(); ++rank) {
    texts.emplace_back(static_cast<const char*>(out.const_data_ptr()) + rank * longest, lengths[rank]);
  }
  return texts;
}

void require_same_on_all_ranks(comm::Group& group, const std::string& place, const std::vector<Fact>& facts,
                               const std::string& hint) {
  const std::string text = joined(facts);
  const auto hashes = gather_words(group, {static_cast<std::int64_t>(hash_text(text))}, "hash of settings");
  if (std::all_of(hashes.begin(), hashes.end(), [&](const auto& words) { return words == hashes[0]; })) return;
  report_difference(place, gather_texts(group, text), hint);
}

void require_same_state(comm::Group& group, std::int64_t step, const std::vector<NamedHash>& hashes) {
  std::vector<std::int64_t> mine;
  for (const NamedHash& one : hashes) mine.push_back(static_cast<std::int64_t>(one.hash));
  const auto all = gather_words(group, mine, "hash of state");
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    std::map<std::int64_t, std::vector<int>> ranks;  // by hash
    for (int rank = 0; rank < group.size(); ++rank) ranks[all[rank][i]].push_back(rank);
    if (ranks.size() == 1) continue;
    const auto majority = std::max_element(
        ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    std::string odd;
    for (const auto& [hash, some] : ranks) {
      if (hash == majority->first) continue;
      for (const int rank : some) odd += (odd.empty() ? "" : ", ") + std::to_string(rank);
    }
    const bool verdict = majority->second.size() * 2 > static_cast<std::size_t>(group.size());
    fail(ErrorCode::kMismatch,
         {"train::parity", "state has diverged at step " + std::to_string(step) + ": " + hashes[i].name,
          verdict ? "other bits on rank " + odd : "bits that differ between ranks, no majority",
          "the same bits on every rank", "looking for code that changes parameters on one rank only"});
  }
}

}  // namespace thinwire::train
