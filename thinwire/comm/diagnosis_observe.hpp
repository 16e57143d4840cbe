// Gathers what a diagnosis is made of: the peers' direct answers and, at the same time, the store.
#pragma once

#include "thinwire/comm/diagnosis.hpp"
#include "thinwire/comm/diagnosis_judge.hpp"
#include "thinwire/comm/watchdog.hpp"

namespace thinwire::comm {

// Takes limits.ask_ms when a peer is silent, limits.store_ms when the store is, milliseconds otherwise.
Observations observe(Watchdog& watchdog, const JudgeSettings& settings);

// Asks the peers once more; what the store said stays.
void look_again(Watchdog& watchdog, const JudgeSettings& settings, Observations* seen);

}  // namespace thinwire::comm
