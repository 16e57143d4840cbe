#include "thinwire/codec/error_feedback.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "thinwire/base/error.hpp"

namespace thinwire::codec {
namespace {

TEST(ErrorFeedback, WithoutACommitNothingHappened) {
  ErrorFeedback feedback(4);
  std::ranges::fill(feedback.pending(), 5.0F);
  EXPECT_TRUE(std::ranges::all_of(feedback.committed(), [](float v) { return v == 0; }));
  feedback.commit();
  EXPECT_TRUE(std::ranges::all_of(feedback.committed(), [](float v) { return v == 5; }));
  EXPECT_TRUE(std::ranges::all_of(feedback.pending(), [](float v) { return v == 0; }));
}

TEST(ErrorFeedback, AKeptRangeSurvivesTheCommit) {
  ErrorFeedback feedback(4);
  feedback.restore(std::vector<float>{1, 2, 3, 4});
  std::ranges::fill(feedback.pending(), 9.0F);
  feedback.keep(1, 2);
  feedback.commit();
  EXPECT_TRUE(std::ranges::equal(feedback.committed(), std::vector<float>{9, 2, 3, 9}));
  feedback.rescale(0.5F);
  EXPECT_TRUE(std::ranges::equal(feedback.committed(), std::vector<float>{4.5F, 1, 1.5F, 4.5F}));
}

TEST(ErrorFeedback, RefusesWhatDoesNotFit) {
  ErrorFeedback feedback(4);
  EXPECT_THROW(ErrorFeedback(-1), Error);
  EXPECT_THROW(feedback.keep(3, 2), Error);
  EXPECT_THROW(feedback.keep(-1, 1), Error);
  EXPECT_THROW(feedback.keep(0, -1), Error);
  EXPECT_THROW(feedback.restore(std::vector<float>(3)), Error);
  feedback.keep(4, 0);
}

}  // namespace
}  // namespace thinwire::codec
