#include "thinwire/comm/diagnosis_handler.hpp"

#include <memory>
#include <string>
#include <utility>

namespace thinwire::comm {

FailureHandler make_failure_handler(Watchdog& watchdog, std::function<void()> shutdown_groups,
                                    const JudgeSettings& settings) {
  auto judge = std::make_shared<Judge>(watchdog, std::move(shutdown_groups), settings);
  return [judge](const OpTag& tag, const std::string& backend_text) {
    return judge->judge({tag.what, tag.step, tag.bucket}, backend_text);
  };
}

}  // namespace thinwire::comm
