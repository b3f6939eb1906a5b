// Floats, by ISA 9.7.3 and 9.7.4: known values, and the host's arithmetic on drawn ones.
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "test/unit/ptx/Harness.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace ds::ptx {

namespace {

constexpr uint64_t nan32 = 0x7FFFFFFF, infinity32 = 0x7F800000, minusZero = 0x80000000;

const Case cases[] = {
    {"add.rn.f32 %r0, %r1, 0f3F800000;", {bits(2.5f)}, bits(3.5f)},
    {"add.rn.f32 %r0, %r1, 1.5;", {bits(2.5f)}, bits(4.0f)},
    {"add.rn.f32 %r0, %r1, %r2;", {infinity32, 0xFF800000}, nan32},
    {"add.rn.f32 %r0, %r1, %r2;", {0x7FC12345, 0}, nan32}, // a payload is not kept
    {"sub.rn.f64 %d0, %d1, 0d3FF0000000000000;", {bits(3.0)}, bits(2.0)},
    {"mul.rn.f32 %r0, %r1, %r2;", {bits(0x1p-100f), bits(0x1p-40f)}, bits(0x1p-140f)},
    {"mul.rn.ftz.f32 %r0, %r1, %r2;", {bits(-0x1p-100f), bits(0x1p-40f)}, minusZero},
    {"mul.rn.ftz.f32 %r0, %r1, %r2;", {1, bits(0x1p100f)}, 0}, // the input is flushed
    {"add.rn.ftz.f32 %r0, %r1, %r2;", {0x80000001, 0x80000001}, minusZero},
    {"add.rn.sat.f32 %r0, %r1, %r2;", {bits(0.75f), bits(0.5f)}, bits(1.0f)},
    {"add.rn.sat.f32 %r0, %r1, %r2;", {bits(-0.75f), bits(0.5f)}, 0},
    {"mul.rn.ftz.sat.f32 %r0, %r1, %r2;", {nan32, bits(0.5f)}, 0},
    {"fma.rn.f32 %r0, %r1, %r2, %r3;", {bits(1 + 0x1p-12f), bits(1 + 0x1p-12f), bits(-1 - 0x1p-11f)}, bits(0x1p-24f)},
    {"mad.rn.f32 %r0, %r1, %r2, %r3;", {bits(1 + 0x1p-12f), bits(1 + 0x1p-12f), bits(-1 - 0x1p-11f)}, bits(0x1p-24f)},
    {"fma.rn.f64 %d0, %d1, %d2, %d3;", {bits(3.0), bits(4.0), bits(5.0)}, bits(17.0)},
    {"div.rn.f32 %r0, %r1, %r2;", {bits(1.0f), bits(3.0f)}, bits(1.0f / 3.0f)},
    {"div.rn.f32 %r0, %r1, %r2;", {0, 0}, nan32},
    {"div.rn.f64 %d0, %d1, %d2;", {bits(1.0), bits(3.0)}, bits(1.0 / 3.0)},
    {"div.full.f32 %r0, %r1, %r2;", {bits(1.0f), bits(4.0f)}, bits(0.25f)},
    {"div.approx.f32 %r0, %r1, %r2;", {bits(1.0f), bits(4.0f)}, bits(0.25f)},
    {"div.approx.f32 %r0, %r1, %r2;", {bits(0x1p126f), bits(0x1p127f)}, 0}, // the reciprocal is flushed
    {"div.approx.f32 %r0, %r1, %r2;", {infinity32, bits(0x1p127f)}, nan32},
    {"neg.f32 %r0, %r1;", {0}, minusZero},
    {"abs.f64 %d0, %d1;", {bits(-2.0)}, bits(2.0)},
    {"neg.ftz.f32 %r0, %r1;", {1}, minusZero},
    {"min.f32 %r0, %r1, %r2;", {nan32, bits(2.0f)}, bits(2.0f)},
    {"max.f32 %r0, %r1, %r2;", {bits(2.0f), 0x7FC00000}, bits(2.0f)},
    {"max.f32 %r0, %r1, %r2;", {0x7FC00000, 0xFFC00000}, nan32},
    {"max.NaN.f32 %r0, %r1, %r2;", {bits(2.0f), 0xFFC00001}, nan32},
    {"min.NaN.f32 %r0, %r1, %r2;", {bits(2.0f), bits(-1.0f)}, bits(-1.0f)},
    {"min.f32 %r0, %r1, %r2;", {0, minusZero}, minusZero},
    {"max.f32 %r0, %r1, %r2;", {minusZero, 0}, 0},
    {"max.ftz.f32 %r0, %r1, %r2;", {2, 1}, 0},
    {"max.f64 %d0, %d1, %d2;", {bits(2.0), bits(-1.0)}, bits(2.0)},
    {"copysign.f32 %r0, %r1, %r2;", {minusZero, bits(3.0f)}, bits(-3.0f)}, // the sign of the first
    {"copysign.f64 %d0, %d1, %d2;", {bits(1.0), bits(-3.0)}, bits(3.0)},
    {"sqrt.rn.f32 %r0, %r1;", {bits(2.0f)}, bits(std::sqrt(2.0f))},
    {"sqrt.rn.f32 %r0, %r1;", {bits(-1.0f)}, nan32},
    {"sqrt.rn.f32 %r0, %r1;", {minusZero}, minusZero},
    {"sqrt.rn.f64 %d0, %d1;", {bits(2.0)}, bits(std::sqrt(2.0))},
    {"rcp.rn.f32 %r0, %r1;", {bits(3.0f)}, bits(1.0f / 3.0f)},
    {"rcp.rn.f64 %d0, %d1;", {bits(3.0)}, bits(1.0 / 3.0)},
    {"rcp.approx.ftz.f32 %r0, %r1;", {1}, infinity32},
    {"sqrt.approx.f32 %r0, %r1;", {bits(4.0f)}, bits(2.0f)},
    {"rsqrt.approx.f32 %r0, %r1;", {bits(4.0f)}, bits(0.5f)},
    {"rsqrt.approx.f32 %r0, %r1;", {minusZero}, 0xFF800000},
    {"rsqrt.approx.f64 %d0, %d1;", {bits(4.0)}, bits(0.5)},
    {"ex2.approx.f32 %r0, %r1;", {bits(-3.0f)}, bits(0.125f)},
    {"ex2.approx.ftz.f32 %r0, %r1;", {bits(-140.0f)}, 0},
    {"ex2.approx.f32 %r0, %r1;", {bits(-140.0f)}, bits(0x1p-140f)},
    {"lg2.approx.f32 %r0, %r1;", {bits(8.0f)}, bits(3.0f)},
    {"lg2.approx.f32 %r0, %r1;", {0}, 0xFF800000},
    {"sin.approx.f32 %r0, %r1;", {bits(1.0f)}, bits(float(std::sin(1.0)))},
    {"cos.approx.f32 %r0, %r1;", {infinity32}, nan32},
    {"tanh.approx.f32 %r0, %r1;", {bits(0.5f)}, bits(float(std::tanh(0.5)))},
    // Of 16 bits: 0x3F80 and 0x3C00 are 1.
    {"add.rn.bf16 %h0, %h1, %h2;", {0x3F80, 0x3F80}, 0x4000},
    {"sub.rn.f16 %h0, %h1, %h2;", {0x4000, 0x3C00}, 0x3C00},
    {"mul.rn.bf16x2 %r0, %r1, %r2;", {0x40003F80, 0x40404000}, 0x40C04000},
    {"fma.rn.bf16x2 %r0, %r1, %r2, %r3;", {0x40003F80, 0x40404000, 0x3F803F80}, 0x40E04040},
    {"fma.rn.f16x2 %r0, %r1, %r2, %r3;", {0x40003C00, 0x42004000, 0x3C003C00}, 0x47004200},
    // 1.5 * (1 + 2^-7) is halfway between two numbers; the least number below it decides.
    {"fma.rn.bf16 %h0, %h1, %h2, %h3;", {0x3FC0, 0x3F81, 0x0000}, 0x3FC2},
    {"fma.rn.bf16 %h0, %h1, %h2, %h3;", {0x3FC0, 0x3F81, 0x8001}, 0x3FC1},
    {"fma.rn.bf16 %h0, %h1, %h2, %h3;", {0xBFC0, 0x3F81, 0x0001}, 0xBFC1},
    {"fma.rn.relu.bf16 %h0, %h1, %h2, %h3;", {0xBFC0, 0x3F81, 0x0001}, 0},
    {"max.NaN.bf16x2 %r0, %r1, %r2;", {0x7FC03F80, 0x40004000}, 0x7FFF4000},
    {"min.bf16 %h0, %h1, %h2;", {0x7FC0, 0x4000}, 0x4000},
    {"neg.bf16x2 %r0, %r1;", {0x3F803F80}, 0xBF80BF80},
    {"abs.bf16 %h0, %h1;", {0xBF80}, 0x3F80},
    {"add.rn.bf16 %h0, %h1, %h2;", {0x7F80, 0xFF80}, 0x7FFF},
};

TEST(PtxFloat, KnownValues) {
  for (const Case &c : cases)
    EXPECT_EQ(evaluated(c.instruction, c.inputs), c.expected) << c.instruction << " of " << std::hex << c.inputs.a;
}

/// Any bits, subnormal numbers and infinities among them.
float drawn(std::mt19937 &random) { return floatOf(uint32_t(random())); }

/// What arithmetic makes of the number.
uint64_t seen(float value) { return std::isnan(value) ? nan32 : bits(value); }

TEST(PtxFloat, DrawnValuesAreAsOnTheHost) {
  std::mt19937 random(11);
  for (int draw = 0; draw < 200; ++draw) {
    const float a = drawn(random), b = drawn(random), c = drawn(random);
    const Inputs inputs{bits(a), bits(b), bits(c)};
    EXPECT_EQ(evaluated("add.rn.f32 %r0, %r1, %r2;", inputs), seen(a + b));
    EXPECT_EQ(evaluated("sub.rn.f32 %r0, %r1, %r2;", inputs), seen(a - b));
    EXPECT_EQ(evaluated("mul.rn.f32 %r0, %r1, %r2;", inputs), seen(a * b));
    EXPECT_EQ(evaluated("div.rn.f32 %r0, %r1, %r2;", inputs), seen(a / b));
    EXPECT_EQ(evaluated("fma.rn.f32 %r0, %r1, %r2, %r3;", inputs), seen(std::fma(a, b, c)));
    EXPECT_EQ(evaluated("sqrt.rn.f32 %r0, %r1;", inputs), seen(std::sqrt(a)));
    EXPECT_EQ(evaluated("rcp.rn.f32 %r0, %r1;", inputs), seen(1 / a));
  }
}

uint64_t seenIn16(uint16_t value, uint16_t infinity) { return (value & 0x7FFF) > infinity ? 0x7FFF : value; }

TEST(PtxFloat, SumsAndProductsOf16BitsAreRoundedOnce) {
  std::mt19937 random(13);
  for (int draw = 0; draw < 500; ++draw) {
    BFloat16 a, b;
    Float16 x, y;
    a.bits = x.bits = uint16_t(random());
    b.bits = y.bits = uint16_t(draw % 2 == 0 ? random() : a.bits + int(random() % 600) - 300);
    // The house rounds twice, to float32 in between: that is as once, with float16 and with bfloat16 near each other.
    EXPECT_EQ(evaluated("add.rn.f16 %h0, %h1, %h2;", {x.bits, y.bits}),
              seenIn16(Float16(float(x) + float(y)).bits, 0x7C00));
    EXPECT_EQ(evaluated("mul.rn.f16 %h0, %h1, %h2;", {x.bits, y.bits}),
              seenIn16(Float16(float(x) * float(y)).bits, 0x7C00));
    EXPECT_EQ(evaluated("sub.rn.bf16 %h0, %h1, %h2;", {a.bits, b.bits}),
              seenIn16(BFloat16(float(a) - float(b)).bits, 0x7F80));
  }
}

} // namespace

} // namespace ds::ptx
