#include "examples/training/trace_file.hpp"

#include <array>
#include <string>

#include "thinwire/watch/chrome_trace.hpp"

namespace examples {

void write_trace(const TrainingFlags& flags, thinwire::DataParallel& parallel) {
  if (flags.trace.empty()) return;
  std::string path = per_rank_path(flags.trace, parallel.size());
  if (const auto at = path.find("{rank}"); at != std::string::npos)
    path.replace(at, 6, std::to_string(parallel.rank()));
  const thinwire::watch::Timeline& timeline = parallel.timeline();
  const std::array traces{thinwire::watch::RankTrace{
      .rank = parallel.rank(), .events = timeline.events(), .clock_offset_s = 0, .dropped = timeline.dropped()}};
  thinwire::watch::write_chrome_trace(path, traces);
}

}  // namespace examples
