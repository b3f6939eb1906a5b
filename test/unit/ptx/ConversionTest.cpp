// Conversions, by ISA 9.7.9.21: known values, and the house's own 16-bit types on drawn ones.
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "test/unit/ptx/Harness.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace ds::ptx {

namespace {

constexpr uint64_t minus1 = ~uint64_t(0), high64 = uint64_t(1) << 63;

const Case cases[] = {
    // Between integers.
    {"cvt.u64.u32 %d0, %r1;", {0xFFFFFFFF}, 0xFFFFFFFF},
    {"cvt.s64.s32 %d0, %r1;", {0xFFFFFFFF}, minus1},
    {"cvt.u32.u64 %r0, %d1;", {0x123456789}, 0x23456789},
    {"cvt.u32.u16 %r0, %h1;", {0xFFFF}, 0xFFFF},
    {"cvt.s32.s16 %r0, %h1;", {0xFFFF}, 0xFFFFFFFF},
    {"cvt.s32.s8 %r0, %r1;", {0x180}, 0xFFFFFF80}, // the source is wider than its type
    {"cvt.u32.u8 %r0, %h1;", {0x180}, 0x80},
    {"cvt.s8.s32 %r0, %r1;", {0x180}, 0xFFFFFF80}, // so is the result
    {"cvt.u8.u32 %h0, %r1;", {0x1FF}, 0xFF},
    {"cvt.sat.s16.s32 %h0, %r1;", {0x12345}, 0x7FFF},
    {"cvt.sat.u8.s32 %r0, %r1;", {0xFFFFFFFF}, 0},
    {"cvt.s64.u32 %d0, %r1;", {0x80000000}, 0x80000000},
    // From floats to integers.
    {"cvt.rzi.s32.f32 %r0, %r1;", {bits(-1.75f)}, 0xFFFFFFFF},
    {"cvt.rni.s32.f32 %r0, %r1;", {bits(2.5f)}, 2},
    {"cvt.rni.s32.f32 %r0, %r1;", {bits(3.5f)}, 4},
    {"cvt.rmi.s32.f32 %r0, %r1;", {bits(-1.25f)}, 0xFFFFFFFE},
    {"cvt.rpi.u32.f32 %r0, %r1;", {bits(1.25f)}, 2},
    {"cvt.rzi.s32.f32 %r0, %r1;", {bits(3e9f)}, 0x7FFFFFFF},
    {"cvt.rzi.u32.f32 %r0, %r1;", {bits(-3.0f)}, 0},
    {"cvt.rzi.s32.f32 %r0, %r1;", {0x7FC00000}, 0},
    {"cvt.rzi.s64.f32 %d0, %r1;", {0x7FC00000}, high64}, // with 64 bits what is no number is the highest bit
    {"cvt.rzi.s32.f64 %r0, %d1;", {0x7FF8000000000000}, 0x80000000},
    {"cvt.rzi.s64.f64 %d0, %d1;", {bits(1e30)}, high64 - 1},
    {"cvt.rzi.u64.f64 %d0, %d1;", {bits(0x1p63)}, high64},
    {"cvt.rzi.u64.f64 %d0, %d1;", {bits(1e30)}, minus1},
    {"cvt.rzi.ftz.s32.f32 %r0, %r1;", {1}, 0},
    {"cvt.rpi.s32.f32 %r0, %r1;", {1}, 1},
    {"cvt.rpi.ftz.s32.f32 %r0, %r1;", {1}, 0},
    {"cvt.rzi.u8.f32 %r0, %r1;", {bits(300.0f)}, 255},
    {"cvt.rzi.s16.bf16 %h0, %h1;", {0xC040}, 0xFFFD}, // -3
    {"cvt.rzi.u32.f16 %r0, %h1;", {0x7C00}, 0xFFFFFFFF},
    // From integers to floats.
    {"cvt.rn.f32.s32 %r0, %r1;", {0xFFFFFFFF}, bits(-1.0f)},
    {"cvt.rn.f32.u32 %r0, %r1;", {0xFFFFFFFF}, bits(0x1p32f)},
    {"cvt.rz.f32.u32 %r0, %r1;", {0xFFFFFFFF}, bits(0x1.fffffep31f)},
    {"cvt.rm.f32.s32 %r0, %r1;", {0x80000001}, bits(-0x1p31f)},
    {"cvt.rp.f32.u32 %r0, %r1;", {0x1000001}, bits(0x1.000002p24f)},
    {"cvt.rn.f32.s64 %r0, %d1;", {0x1000000FFFFFFFF}, bits(float(0x1000000FFFFFFFF))},
    {"cvt.rn.f32.u64 %r0, %d1;", {0x8000008000000001}, bits(0x1.000002p63f)}, // not by way of a double
    {"cvt.rn.f64.u64 %d0, %d1;", {minus1}, bits(0x1p64)},
    {"cvt.rz.f64.u64 %d0, %d1;", {minus1}, bits(0x1.fffffffffffffp63)},
    {"cvt.rm.f64.s64 %d0, %d1;", {high64 + 1}, bits(-0x1p63)},
    {"cvt.rp.f64.u64 %d0, %d1;", {high64 + 1}, bits(0x1.0000000000001p63)},
    {"cvt.rn.f64.s32 %d0, %r1;", {0xFFFFFFF9}, bits(-7.0)},
    {"cvt.rn.f32.u8 %r0, %h1;", {0x1FF}, bits(255.0f)},
    {"cvt.rn.bf16.s32 %h0, %r1;", {257}, 0x4380}, // 256
    {"cvt.rn.f16.u32 %h0, %r1;", {70000}, 0x7C00},
    {"cvt.rz.f16.u32 %h0, %r1;", {70000}, 0x7BFF},
    // Between floats.
    {"cvt.f64.f32 %d0, %r1;", {bits(1.5f)}, bits(1.5)},
    {"cvt.rn.f32.f64 %r0, %d1;", {bits(1 + 0x1p-24)}, bits(1.0f)},
    {"cvt.rp.f32.f64 %r0, %d1;", {bits(1 + 0x1p-24)}, bits(1 + 0x1p-23f)},
    {"cvt.rn.f32.f64 %r0, %d1;", {bits(1e300)}, 0x7F800000},
    {"cvt.rz.f32.f64 %r0, %d1;", {bits(1e300)}, 0x7F7FFFFF},
    {"cvt.rn.f32.f64 %r0, %d1;", {bits(0x1p-149)}, 1},
    {"cvt.rn.ftz.f32.f64 %r0, %d1;", {bits(-0x1p-149)}, 0x80000000},
    {"cvt.rni.f32.f32 %r0, %r1;", {bits(-0.5f)}, 0x80000000},
    {"cvt.rmi.f32.f32 %r0, %r1;", {bits(-0.5f)}, bits(-1.0f)},
    {"cvt.rpi.f64.f64 %d0, %d1;", {bits(1.5)}, bits(2.0)},
    {"cvt.rzi.f32.f32 %r0, %r1;", {bits(-7.9f)}, bits(-7.0f)},
    {"cvt.sat.f32.f32 %r0, %r1;", {bits(2.0f)}, bits(1.0f)},
    {"cvt.sat.f32.f32 %r0, %r1;", {0x7FC00000}, 0},
    {"cvt.f32.f16 %r0, %h1;", {0x3C00}, bits(1.0f)},
    {"cvt.f32.f16 %r0, %h1;", {0x0001}, bits(0x1p-24f)},
    {"cvt.f32.bf16 %r0, %h1;", {0xC000}, bits(-2.0f)},
    {"cvt.rn.f16.f32 %h0, %r1;", {bits(65519.0f)}, 0x7BFF},
    {"cvt.rn.f16.f32 %h0, %r1;", {bits(65520.0f)}, 0x7C00},
    {"cvt.rn.bf16.f32 %h0, %r1;", {0x3F808000}, 0x3F80}, // ties to even
    {"cvt.rn.bf16.f32 %h0, %r1;", {0x3F818000}, 0x3F82},
    {"cvt.rz.bf16.f32 %h0, %r1;", {0x3F81FFFF}, 0x3F81},
    {"cvt.rn.bf16.f32 %h0, %r1;", {0x7F7FFFFF}, 0x7F80},
    {"cvt.rz.bf16.f32 %h0, %r1;", {0x7F7FFFFF}, 0x7F7F},
    {"cvt.rn.bf16.f32 %h0, %r1;", {0xFFC12345}, 0x7FFF},
    {"cvt.rn.relu.bf16.f32 %h0, %r1;", {bits(-1.0f)}, 0},
    {"cvt.rn.bf16.f64 %h0, %d1;", {bits(1 + 0x1p-8 + 0x1p-50)}, 0x3F81},        // not by way of a float32
    {"cvt.rn.bf16x2.f32 %r0, %r1, %r2;", {bits(2.0f), bits(1.0f)}, 0x40003F80}, // the first goes up
    {"cvt.rn.f16x2.f32 %r0, %r1, %r2;", {bits(2.0f), bits(1.0f)}, 0x40003C00},
    {"cvt.rn.relu.bf16x2.f32 %r0, %r1, %r2;", {bits(-2.0f), bits(1.0f)}, 0x00003F80},
    {"cvta.to.global.u64 %d0, %d1;", {0x7000}, 0x7000},
};

TEST(PtxConversion, KnownValues) {
  for (const Case &c : cases)
    EXPECT_EQ(evaluated(c.instruction, c.inputs), c.expected) << c.instruction << " of " << std::hex << c.inputs.a;
}

TEST(PtxConversion, DrawnValuesAreAsInTheHouse) {
  std::mt19937 random(17);
  for (int draw = 0; draw < 500; ++draw) {
    const auto word = uint32_t(random());
    const float value = floatOf(draw % 2 == 0 ? word : (word & 0x83FFFFFF) | 0x38000000); // around float16's range
    if (std::isnan(value))
      continue;
    EXPECT_EQ(evaluated("cvt.rn.bf16.f32 %h0, %r1;", {bits(value)}), BFloat16(value).bits) << value;
    EXPECT_EQ(evaluated("cvt.rn.f16.f32 %h0, %r1;", {bits(value)}), Float16(value).bits) << value;
    EXPECT_EQ(evaluated("cvt.rn.bf16.f64 %h0, %d1;", {bits(double(value))}), BFloat16(value).bits) << value;
    Float16 half;
    half.bits = uint16_t(word);
    if (!std::isnan(float(half))) {
      EXPECT_EQ(evaluated("cvt.f64.f16 %d0, %h1;", {half.bits}), bits(double(float(half))));
    }
    EXPECT_EQ(evaluated("cvt.rn.f32.s64 %r0, %d1;", {uint64_t(word) << (draw % 32) | 1}),
              bits(float(int64_t(uint64_t(word) << (draw % 32) | 1))));
  }
}

} // namespace

} // namespace ds::ptx
