#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"
#include "thinwire/cli/parse_arguments.hpp"
#include "thinwire/cli/raw_floats.hpp"
#include "thinwire/cli/verbs.hpp"
#include "thinwire/codec/stream.hpp"

namespace thinwire::cli {
namespace {

constexpr const char* kName = "thinwire codec";
constexpr const char* kAbout =
    "Encodes files of raw floats, decodes them, and tells what is in an encoded file.\n"
    "Example: thinwire codec encode --codec int4 gradients.f32 gradients.twc\n";

struct CodecArguments {
  std::string codec;
  codec::Dtype dtype = codec::Dtype::kFp32;
  std::vector<std::int64_t> segments;
  std::uint64_t seed = 0;
  std::string in;
  std::string out;
  std::string against;
};

std::string known_list() {
  std::string list;
  for (const std::string& name : codec::known_codecs()) list += (list.empty() ? "" : " ") + name;
  return list;
}

void add_dtype(CLI::App& app, codec::Dtype& dtype, const char* what) {
  std::map<std::string, codec::Dtype> names;
  for (const NamedDtype& one : dtypes()) names[one.name] = one.dtype;
  app.add_option("--dtype", dtype, what)->type_name("DTYPE")->transform(CLI::CheckedTransformer(names).description(""));
}

void declare_encode(CLI::App& verb, CodecArguments& arguments) {
  verb.add_option("--codec", arguments.codec, "text of the codec, options included: one of " + known_list())
      ->required()
      ->type_name("TEXT");
  add_dtype(verb, arguments.dtype, "of the input: fp32, bf16 or fp16 (fp32)");
  verb.add_option("--segments", arguments.segments, "lengths of the pieces, comma-separated (one piece)")
      ->delimiter(',')
      ->type_name("N,...");
  verb.add_option("--seed", arguments.seed, "for codecs that draw random numbers (0)")->type_name("N");
  verb.add_option("IN", arguments.in, "file of raw little-endian floats")->required();
  verb.add_option("OUT", arguments.out, "file to write")->required();
}

int encode(CodecArguments& arguments) {
  const auto codec = codec::make_codec(arguments.codec);
  const RawFloats input(arguments.in, arguments.dtype);
  const auto elements = static_cast<std::int64_t>(input.values().size());
  if (arguments.segments.empty()) arguments.segments = {elements};
  const std::vector<std::byte> bytes = codec::write_stream(*codec, input.values(), arguments.segments, arguments.seed);
  const std::span<const std::byte> chunk(bytes);
  write_file_atomically(arguments.out, FileChunks{&chunk, 1});
  if (codec::read_stream(bytes).non_finite)
    std::fprintf(stderr, "%s: %s holds a NaN or an infinity: its blocks are meaningless\n", kName,
                 arguments.in.c_str());
  return 0;
}

int decode(const CodecArguments& arguments) {
  const std::vector<std::byte> bytes = read_file(arguments.in);
  write_raw_floats(arguments.out, codec::decode_stream(codec::read_stream(bytes)));
  return 0;
}

double norm_of(std::span<const float> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

void print_error(const std::string& path, std::span<const float> decoded) {
  const RawFloats original(path, codec::Dtype::kFp32);
  if (original.values().size() != decoded.size()) {
    fail(ErrorCode::kInvalidArgument, {kName, path, std::to_string(original.values().size()) + " values",
                                       std::to_string(decoded.size()), "the fp32 file that was encoded"});
  }
  std::vector<float> difference(decoded.begin(), decoded.end());
  float largest = 0;
  for (std::size_t i = 0; i < difference.size(); ++i) {
    difference[i] -= original.values().fp32()[i];
    largest = std::max(largest, std::fabs(difference[i]));
  }
  const double norm = norm_of({original.values().fp32(), decoded.size()});
  std::printf("error        %.6g of the norm, at most %.6g\n", norm == 0 ? 0 : norm_of(difference) / norm,
              static_cast<double>(largest));
}

int inspect(const CodecArguments& arguments) {
  const std::vector<std::byte> bytes = read_file(arguments.in);
  const codec::Stream stream = codec::read_stream(bytes);
  const std::vector<float> values = codec::decode_stream(stream);
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  const auto elements = static_cast<double>(stream.elements());
  std::printf("codec        %s\nelements     %lld in %zu segments\nbytes        %zu encoded, %zu with the header\n",
              stream.codec.c_str(), static_cast<long long>(stream.elements()), stream.segments.size(),
              stream.payload.size(), bytes.size());
  std::printf("bits         %.4f per element: %.2f times fewer than fp32\n",
              elements == 0 ? 0 : 8.0 * static_cast<double>(stream.payload.size()) / elements,
              stream.payload.empty() ? 1 : 4.0 * elements / static_cast<double>(stream.payload.size()));
  std::printf("decoded      norm %.6g, largest magnitude %.6g%s\n", norm_of(values), static_cast<double>(largest),
              stream.non_finite ? "; a NaN or an infinity was among the inputs" : "");
  if (!arguments.against.empty()) print_error(arguments.against, values);
  return 0;
}

}  // namespace

int codec_verb(const Arguments& arguments) {
  CodecArguments parsed;
  CLI::App app(kAbout, kName);
  app.require_subcommand(1);
  CLI::App& encoding = *app.add_subcommand("encode", "raw floats to an encoded file");
  declare_encode(encoding, parsed);
  CLI::App& decoding = *app.add_subcommand("decode", "an encoded file to raw fp32");
  decoding.add_option("IN", parsed.in, "encoded file")->required();
  decoding.add_option("OUT", parsed.out, "file to write")->required();
  CLI::App& inspecting = *app.add_subcommand("inspect", "codec, sizes, and the error against the original");
  inspecting.add_option("IN", parsed.in, "encoded file")->required();
  inspecting.add_option("--against", parsed.against, "the fp32 file that was encoded")->type_name("FILE");
  if (const auto status = parse_arguments(app, arguments)) return *status;
  try {
    if (encoding.parsed()) return encode(parsed);
    return decoding.parsed() ? decode(parsed) : inspect(parsed);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) return usage_error(kName, error.what());
    std::fprintf(stderr, "%s: %s\n", kName, error.what());
    return 1;
  }
}

}  // namespace thinwire::cli
