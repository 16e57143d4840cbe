#include "thinwire/comm/assembled_world.hpp"

#include <utility>

#include "thinwire/comm/local_group.hpp"

namespace thinwire::comm {
namespace {

class AssembledWorld final : public World {
 public:
  explicit AssembledWorld(WorldParts parts) : parts_(std::move(parts)) {}
  ~AssembledWorld() override {
    if (parts_.failures) parts_.failures->clear();
    parts_.watchdog.reset();
    parts_.hop1.reset();
    parts_.hop2.reset();
  }
  AssembledWorld(const AssembledWorld&) = delete;
  AssembledWorld& operator=(const AssembledWorld&) = delete;

  int rank() const override { return parts_.rank; }
  int size() const override { return parts_.size; }
  int local_rank() const override { return parts_.local_rank; }
  Group& hop1() override { return *parts_.hop1; }
  Group& hop2() override { return *parts_.hop2; }
  Progress& progress() override { return *parts_.progress; }
  bool emulated() const override { return parts_.emulated; }

 private:
  WorldParts parts_;
};

}  // namespace

std::unique_ptr<World> assemble_world(WorldParts parts) {
  return std::make_unique<AssembledWorld>(std::move(parts));
}

std::vector<std::unique_ptr<World>> make_local_worlds(int size, std::int64_t timeout_ms) {
  auto hop1 = make_local_groups(size, timeout_ms);
  auto hop2 = make_local_groups(size, timeout_ms);
  std::vector<std::unique_ptr<World>> worlds;
  for (int rank = 0; rank < size; ++rank) {
    WorldParts parts{.rank = rank, .size = size, .local_rank = rank};
    parts.hop1 = std::move(hop1[static_cast<std::size_t>(rank)]);
    parts.hop2 = std::move(hop2[static_cast<std::size_t>(rank)]);
    worlds.push_back(assemble_world(std::move(parts)));
  }
  return worlds;
}

}  // namespace thinwire::comm
