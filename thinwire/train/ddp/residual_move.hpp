// Server residuals follow their ranges when buckets are cut anew: one all-to-all.
#pragma once

#include <functional>
#include <vector>

#include "thinwire/comm/group.hpp"
#include "thinwire/train/ddp/gradient_state.hpp"
#include "thinwire/train/ddp/layout.hpp"

namespace thinwire::train {

// The ranges that lie in both lists, each sorted by parameter and offset.
std::vector<Piece> intersection(const std::vector<Piece>& a, const std::vector<Piece>& b);

// Collective. Returns this rank's residuals as the new layout cuts them, values unchanged. Ranges of parameters for
// which `compressed` is false have none.
std::vector<ServerResidual> move_residuals(comm::Group& group, std::vector<ServerResidual> held, const Layout& before,
                                           const Layout& after, const std::function<bool(int)>& compressed);

}  // namespace thinwire::train
