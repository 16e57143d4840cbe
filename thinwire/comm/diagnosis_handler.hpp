// Connects the judge to groups: the FailureHandler that they call when an operation has failed.
#pragma once

#include <functional>

#include "thinwire/comm/diagnosis_judge.hpp"
#include "thinwire/comm/failure.hpp"

namespace thinwire::comm {

// `watchdog` must outlive the handler and its copies. `shutdown_groups` calls Group::shutdown on every group of the
// job; it runs once, first of all, on the thread that saw the failure. Copies share one judge: one Error per job.
FailureHandler make_failure_handler(Watchdog& watchdog, std::function<void()> shutdown_groups,
                                    const JudgeSettings& settings = {});

}  // namespace thinwire::comm
