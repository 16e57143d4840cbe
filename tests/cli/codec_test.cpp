// The verbs `codec` and `bench codec`, as a shell runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/command_line.hpp"
#include "thinwire/base/file.hpp"
#include "thinwire/cli/codec_errors.hpp"
#include "thinwire/cli/raw_floats.hpp"
#include "thinwire/codec/codec.hpp"
#include "thinwire/codec/implementation.hpp"
#include "thinwire/schema/codec_report.hpp"

namespace thinwire::cli {
namespace {

using testing::HasSubstr;

Ended run(std::vector<std::string> arguments) {
  return CommandLine(std::move(arguments)).wait();
}

class CodecVerb : public testing::Test {
 protected:
  void SetUp() override { write_raw_floats(raw_, values_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = [] {
    std::string name = testing::TempDir() + "thinwire-codec-XXXXXX";
    return std::string(mkdtemp(name.data()));
  }();
  const std::vector<float> values_ = normal_values(5000);
  const std::string raw_ = folder_ + "/raw.f32";
  const std::string encoded_ = folder_ + "/encoded.twc";
  const std::string back_ = folder_ + "/back.f32";
};

TEST_F(CodecVerb, EncodesAndDecodesAsTheLibraryDoes) {
  const Ended encoding =
      run({"codec", "encode", "--codec", "int4:block=64", "--segments", "3000,2000", raw_, encoded_});
  ASSERT_EQ(encoding.status, 0) << encoding.err;
  ASSERT_EQ(run({"codec", "decode", encoded_, back_}).status, 0);
  const auto codec = codec::make_codec("int4:block=64");
  const std::vector<std::int64_t> segments{3000, 2000};
  std::vector<std::byte> bytes(static_cast<std::size_t>(codec->wire_bytes(segments)));
  std::vector<float> want(values_.size());
  codec->encode(values_, segments, bytes);
  codec->decode(bytes, segments, want);
  const RawFloats back(back_, codec::Dtype::kFp32);
  EXPECT_TRUE(std::equal(want.begin(), want.end(), back.values().fp32(), back.values().fp32() + back.values().size()));
}

TEST_F(CodecVerb, ReadsHalves) {
  const std::vector<std::uint16_t> halves{0x3F80, 0xC000, 0x0000};  // 1, -2, 0 as bf16
  write_file_atomically(raw_, std::string_view(reinterpret_cast<const char*>(halves.data()), 6));
  ASSERT_EQ(run({"codec", "encode", "--codec", "fp32", "--dtype", "bf16", raw_, encoded_}).status, 0);
  ASSERT_EQ(run({"codec", "decode", encoded_, back_}).status, 0);
  const RawFloats back(back_, codec::Dtype::kFp32);
  ASSERT_EQ(back.values().size(), 3U);
  EXPECT_EQ(back.values().fp32()[0], 1.0F);
  EXPECT_EQ(back.values().fp32()[1], -2.0F);
}

TEST_F(CodecVerb, InspectTellsWhatIsInTheFile) {
  ASSERT_EQ(run({"codec", "encode", "--codec", "fp16", raw_, encoded_}).status, 0);
  const Ended told = run({"codec", "inspect", encoded_, "--against", raw_});
  EXPECT_EQ(told.status, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("codec        fp16\n"));
  EXPECT_THAT(told.out, HasSubstr("5000 in 1 segments"));
  EXPECT_THAT(told.out, HasSubstr("16.0000 per element: 2.00 times fewer"));
  EXPECT_THAT(told.out, HasSubstr("error        0.0002"));
}

TEST_F(CodecVerb, SaysWhatIsWrong) {
  const Ended codec = run({"codec", "encode", "--codec", "int5", raw_, encoded_});
  EXPECT_EQ(codec.status, 2);
  EXPECT_THAT(codec.err, HasSubstr("got \"int5\", want one of bf16 eden"));
  const Ended segments = run({"codec", "encode", "--codec", "int4", "--segments", "1,2", raw_, encoded_});
  EXPECT_EQ(segments.status, 2);
  EXPECT_THAT(segments.err, HasSubstr("got 5000, want 3"));
  EXPECT_FALSE(std::filesystem::exists(encoded_)) << "half-written";
  const Ended foreign = run({"codec", "decode", raw_, back_});
  EXPECT_EQ(foreign.status, 1);
  EXPECT_THAT(foreign.err, HasSubstr("want TWCODEC"));
  const Ended missing = run({"codec", "inspect", folder_ + "/nothing"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("nothing: No such file"));
  write_file_atomically(raw_, std::string_view("abcde"));
  const Ended odd = run({"codec", "encode", "--codec", "int4", raw_, encoded_});
  EXPECT_EQ(odd.status, 1);
  EXPECT_THAT(odd.err, HasSubstr("got 5 bytes, want a whole number of fp32 values"));
  EXPECT_EQ(run({"codec"}).status, 2);
  EXPECT_EQ(run({"codec", "encode", "--codec", "int4", raw_}).status, 2);
}

TEST_F(CodecVerb, WarnsOfNonFiniteInputs) {
  std::vector<float> values = values_;
  values[10] = std::nanf("");
  write_raw_floats(raw_, values);
  const Ended ended = run({"codec", "encode", "--codec", "one_bit", raw_, encoded_});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.err, HasSubstr("holds a NaN or an infinity"));
}

TEST_F(CodecVerb, BenchMeasuresWhatItIsAskedFor) {
  const std::string json = folder_ + "/bench.json";
  const Ended ended = run({"bench", "codec", "--codec", "int8", "--codec", "one_bit:block=128", "--elements", "20000",
                           "--rounds", "1", "--dtype", "fp32", "--dtype", "bf16", "--gradients", raw_, "--json", json});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const schema::CodecReport report = schema::codec_report_from_json(read_text_file(json));
  EXPECT_EQ(report.elements, 20000);
  EXPECT_GT(report.memcpy_gb_per_s, 0);
  EXPECT_EQ(report.rows.size(), 2 * codec::implementations().size() * (6 + 3));
  for (const schema::CodecRow& row : report.rows) {
    EXPECT_GT(row.gb_per_s, 0) << row.op;
    EXPECT_GT(row.vs_memcpy, 0) << row.op;
    ASSERT_TRUE(row.error_gradient.has_value());
    if (row.codec.starts_with("int8")) {
      EXPECT_NEAR(row.bits_per_element, 8 + 32.0 / 128, 0.01);
      EXPECT_NEAR(row.error, 0.0064, 0.001);
      EXPECT_NEAR(*row.error_gradient, row.error, 0.001) << "the file holds normal values";
      EXPECT_LT(row.error_sparse, row.error_student_t);
    } else {
      EXPECT_EQ(row.codec, "one_bit:scale=rms,block=128");
      EXPECT_NEAR(row.error, 0.635, 0.01);
      EXPECT_NEAR(row.error, std::sqrt(2 - 2 * std::sqrt(2 / M_PI)), 0.01);
    }
  }
  EXPECT_THAT(ended.out, HasSubstr("momentum_encode"));
  EXPECT_EQ(run({"bench", "codec", "--codec", "int5"}).status, 2);
  EXPECT_EQ(run({"bench", "codec", "--implementation", "mmx"}).status, 2);
  EXPECT_EQ(run({"bench", "codec", "--dtype", "fp64"}).status, 2);
  EXPECT_EQ(run({"bench"}).status, 2);
}

}  // namespace
}  // namespace thinwire::cli
