#include "examples/training/trace_file.hpp"

#include <array>
#include <string>

#include "thinwire/base/file.hpp"
#include "thinwire/watch/chrome_trace.hpp"

namespace examples {

void write_trace(const TrainingFlags& flags, thinwire::DataParallel& parallel) {
  if (flags.trace.empty()) return;
  const std::string path = thinwire::path_of_rank(flags.trace, parallel.rank(), parallel.size());
  const thinwire::watch::Timeline& timeline = parallel.timeline();
  const std::array traces{thinwire::watch::RankTrace{
      .rank = parallel.rank(), .events = timeline.events(), .clock_offset_s = 0, .dropped = timeline.dropped()}};
  thinwire::watch::write_chrome_trace(path, traces);
}

}  // namespace examples
