// Whole kernels: what llc wrote of numbers.ll, and kernels that ds-opt writes. Each is compared with its meaning in
// C++.
#include "core/Error.h"
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "kernels/ptx/Buffers.h"
#include "kernels/ptx/Ptx.h"
#include "test/unit/ptx/Harness.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace ds::ptx {

namespace {

Module sample(const std::string &name) {
  std::ifstream file(DS_SOURCE_DIR "/test/unit/ptx/samples/" + name + ".ptx");
  return parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

/// Operands of one call, each in a buffer of its own.
class Call {
public:
  template <typename T> void add(std::vector<T> &values, bool writable) {
    const uint64_t address = (parameters_.size() + 1) << 32;
    memory_.add(address, std::as_writable_bytes(std::span(values)), writable);
    parameters_.push_back(address);
  }
  void addNumber(uint64_t value) { parameters_.push_back(value); }
  void run(const Module &module, const char *entry, Grid grid) {
    (void)ptx::run(module, entry, grid, parameters_, memory_);
  }

private:
  Buffers memory_;
  std::vector<uint64_t> parameters_;
};

std::vector<uint16_t> drawnBrains(std::mt19937 &random, size_t count, float least, float most) {
  std::uniform_real_distribution<float> drawn(least, most);
  std::vector<uint16_t> values(count);
  for (uint16_t &value : values)
    value = BFloat16(drawn(random)).bits;
  return values;
}
std::vector<float> drawnFloats(std::mt19937 &random, size_t count) {
  std::normal_distribution<float> drawn(0, 3);
  std::vector<float> values(count);
  for (float &value : values)
    value = drawn(random);
  return values;
}
float floatOfBrain(uint16_t value) {
  BFloat16 result;
  result.bits = value;
  return float(result);
}
float rounded(float value) { return float(BFloat16(value)); }

class Numbers : public testing::TestWithParam<const char *> {};

TEST_P(Numbers, Brain) {
  std::mt19937 random(5);
  // Between 1/2 and 2 float32 holds each sum and product of the kernel, so that it is rounded once here.
  auto a = drawnBrains(random, 64, 0.5f, 2), b = drawnBrains(random, 64, 0.5f, 2);
  const auto before = b;
  Call call;
  call.add(a, false);
  call.add(b, true);
  call.run(sample(GetParam()), "brain", {1, 16});
  for (size_t i = 0; i < b.size(); ++i) {
    const float v = floatOfBrain(a[i]), w = floatOfBrain(before[i]), s = rounded(v + w), m = rounded(s * w);
    const float f = float(BFloat16(m * s + v));
    EXPECT_EQ(b[i], BFloat16(std::max(f, v) / w).bits) << v << " " << w;
  }
}

TEST_P(Numbers, Single) {
  std::mt19937 random(6);
  auto a = drawnFloats(random, 32);
  a[0] = 0;
  a[1] = -HUGE_VALF;
  a[2] = 5.5f;
  std::vector<float> b(32);
  Call call;
  call.add(a, false);
  call.add(b, true);
  const Module module = sample(GetParam());
  EXPECT_EQ(module.find("single")->approximations, std::set<std::string>{"ex2.approx.f32"});
  call.run(module, "single", {1, 8});
  for (size_t i = 0; i < b.size(); ++i) {
    const float v = a[i], e = float(std::exp2(double(v))), l = std::floor(std::min(std::max(e, v), 5.0f));
    const float y = rounded(std::copysign(l + std::nearbyint(v), v));
    EXPECT_EQ(bits(b[i]), bits(y == v ? y : -y)) << v;
  }
}

TEST_P(Numbers, Integer) {
  std::mt19937_64 random(7);
  std::vector<uint8_t> a(32);
  std::vector<uint64_t> b(32);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = uint8_t(random());
    b[i] = random() >> (i % 3 * 20);
  }
  const auto bytes = a;
  const auto words = b;
  constexpr uint64_t n = 9;
  Call call;
  call.add(a, true);
  call.add(b, true);
  call.addNumber(n);
  call.run(sample(GetParam()), "integer", {1, 32});
  for (size_t i = 0; i < a.size(); ++i) {
    uint64_t h = words[i];
    for (uint64_t round = 0; round < n; ++round) {
      const uint64_t d = h / 12345, shift = bytes[i] & 63;
      h = (shift == 0 ? h : h << shift | d >> (64 - shift)) ^ d % n;
    }
    EXPECT_EQ(b[i], h);
    EXPECT_EQ(a[i], Float16(float(int64_t(h) >> 7)).bits > 0x7BFF);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Numbers, testing::Values("numbers_sm80", "numbers_sm90"));

// Kernels that ds-opt writes; their first lines say what they take.

TEST(PtxSample, BiasAndRelu) {
  std::mt19937 random(8);
  constexpr size_t rows = 16 * 1024, columns = 768, blocks = 3, count = blocks * 256 * 8;
  auto x = drawnBrains(random, rows * columns, -3, 3), bias = drawnBrains(random, columns, -3, 3);
  std::vector<uint16_t> y(rows * columns);
  std::vector<float> wide(rows * columns);
  Call call;
  call.add(x, false);
  call.add(bias, false);
  call.add(y, true);
  call.add(wide, true);
  call.run(sample("bias_relu"), "bias_relu", {blocks, 256});
  for (size_t i = 0; i < count; ++i) {
    const float sum = rounded(floatOfBrain(x[i]) + floatOfBrain(bias[i % columns]));
    ASSERT_EQ(y[i], BFloat16(std::max(sum, 0.0f)).bits) << i;
  }
  EXPECT_EQ(y[count], 0);
}

TEST(PtxSample, DropoutAndSelect) {
  std::mt19937 random(9);
  constexpr size_t total = 16 * 12 * 64 * 64, count = 2 * 256 * 8;
  auto x = drawnBrains(random, total, -3, 3), scale = drawnBrains(random, 1, 1, 2);
  std::vector<uint8_t> mask(total);
  for (uint8_t &keep : mask)
    keep = random() % 2;
  std::vector<uint16_t> y(total);
  Call call;
  call.add(x, false);
  call.add(scale, false);
  call.add(mask, false);
  call.add(y, true);
  call.run(sample("dropout_select"), "dropout_select", {2, 256});
  for (size_t i = 0; i < count; ++i)
    ASSERT_EQ(y[i], mask[i] != 0 ? BFloat16(floatOfBrain(x[i]) * floatOfBrain(scale[0])).bits : 0) << i;
}

TEST(PtxSample, BroadcastOfOddShapes) {
  std::mt19937 random(10);
  auto x = drawnFloats(random, 6300), a = drawnFloats(random, 42), b = drawnFloats(random, 5);
  std::vector<float> y(6300);
  Call call;
  call.add(x, false);
  call.add(a, false);
  call.add(b, false);
  call.add(y, true);
  call.run(sample("broadcast_odd"), "broadcast_odd", {7, 256});
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t column = i % 7, plane = i / 210 % 5, batch = i / 1050;
    ASSERT_EQ(bits(y[i]), bits((x[i] - a[batch * 7 + column]) * b[plane])) << i;
  }
}

TEST(PtxSample, Comparison) {
  std::mt19937 random(12);
  auto x = drawnFloats(random, 4000), rows = drawnFloats(random, 4);
  x[3] = NAN;
  x[4] = rows[0];
  std::vector<uint8_t> isLess(4000);
  std::vector<uint16_t> y(4000);
  Call call;
  call.add(x, false);
  call.add(rows, false);
  call.add(isLess, true);
  call.add(y, true);
  call.run(sample("compare"), "compare", {2, 256});
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(isLess[i], x[i] <= rows[i / 1000]) << i;
    ASSERT_EQ(y[i], x[i] <= rows[i / 1000] ? 0x3F80 : 0) << i;
  }
}

TEST(PtxSample, ErrorFunction) {
  std::mt19937 random(11);
  auto x = drawnFloats(random, 1001);
  std::vector<float> y(1001);
  Call call;
  call.add(x, false);
  call.add(y, true);
  const Module module = sample("unary_57");
  EXPECT_TRUE(module.entries[0].approximations.empty());
  call.run(module, "unary_57", {1, 256});
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], std::erf(double(x[i])), 2e-7) << x[i];
}

} // namespace

} // namespace ds::ptx
