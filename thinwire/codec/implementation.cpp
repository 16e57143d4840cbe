#include "thinwire/codec/implementation.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <cctype>

#include "thinwire/base/error.hpp"

namespace thinwire::codec {
namespace {

std::atomic<bool> scalar_chosen{false};

std::string name_of(std::int64_t target) {
  std::string name = hwy::TargetName(target);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name == "avx3" ? "avx512" : name;
}

// Bits of the instruction sets that the kernels exist for and this machine has, the best last.
std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> found = hwy::SupportedAndGeneratedTargets();
  std::erase_if(found, [](std::int64_t target) { return target == HWY_SCALAR || target == HWY_EMU128; });
  std::reverse(found.begin(), found.end());
  return found;
}

// 0: all of them.
void allow(std::int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// Never changes, but Highway's list does once one is chosen.
const std::vector<std::int64_t>& all_targets() {
  static const std::vector<std::int64_t> all = targets();
  return all;
}

}  // namespace

std::vector<std::string> implementations() {
  std::vector<std::string> names{"scalar"};
  for (const std::int64_t target : all_targets()) names.push_back(name_of(target));
  return names;
}

std::string implementation() {
  all_targets();
  if (scalar_chosen) return "scalar";
  const std::vector<std::int64_t> allowed = targets();
  return allowed.empty() ? "scalar" : name_of(allowed.back());
}

void choose_implementation(std::string_view name) {
  for (const std::int64_t target : all_targets()) {
    if (name_of(target) != name) continue;
    allow(target);
    scalar_chosen = false;
    return;
  }
  if (name != "scalar") {
    std::string known;
    for (const std::string& one : implementations()) known += (known.empty() ? "" : " ") + one;
    fail(ErrorCode::kInvalidArgument, {.place = "codec::choose_implementation",
                                       .what = "implementation",
                                       .got = "\"" + std::string(name) + "\"",
                                       .want = "one of " + known,
                                       .hint = implementations().back()});
  }
  scalar_chosen = true;
}

bool scalar_is_chosen() {
  return scalar_chosen.load(std::memory_order_relaxed);
}

}  // namespace thinwire::codec
