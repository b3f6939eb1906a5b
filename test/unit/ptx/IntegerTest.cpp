// Integers, by ISA 9.7.1 and 9.7.8: known values, and the host's arithmetic on drawn ones.
#include "core/Error.h"
#include "test/unit/ptx/Harness.h"

#include <gtest/gtest.h>
#include <random>

namespace ds::ptx {

namespace {

constexpr uint64_t minus1 = ~uint64_t(0);

const Case cases[] = {
    {"add.s32 %r0, %r1, %r2;", {0x7FFFFFFF, 1}, 0x80000000},
    {"add.sat.s32 %r0, %r1, %r2;", {0x7FFFFFFF, 1}, 0x7FFFFFFF},
    {"sub.sat.s32 %r0, %r1, %r2;", {0x80000000, 1}, 0x80000000},
    {"add.u16 %h0, %h1, %h2;", {0xFFFF, 2}, 1},
    {"sub.s64 %d0, %d1, %d2;", {1, 2}, minus1},
    {"add.s32 %r0, %r1, -128;", {5}, 0xFFFFFF85},
    {"mul.lo.s32 %r0, %r1, %r2;", {0xFFFFFFFF, 7}, 0xFFFFFFF9},
    {"mul.lo.u16 %h0, %h1, %h2;", {0xFFFF, 0xFFFF}, 1},
    {"mul.hi.u32 %r0, %r1, %r2;", {0xFFFFFFFF, 0xFFFFFFFF}, 0xFFFFFFFE},
    {"mul.hi.s32 %r0, %r1, %r2;", {0xFFFFFFFF, 2}, 0xFFFFFFFF},
    {"mul.hi.u64 %d0, %d1, 6120523590596543007;", {minus1}, 6120523590596543006},
    {"mul.hi.s64 %d0, %d1, %d2;", {minus1, 5}, minus1},
    {"mul.wide.u32 %d0, %r1, %r2;", {0xFFFFFFFF, 0xFFFFFFFF}, 0xFFFFFFFE00000001},
    {"mul.wide.s32 %d0, %r1, 2;", {0xFFFFFFFF}, minus1 - 1},
    {"mul.wide.u16 %r0, %h1, %h2;", {0xFFFF, 0xFFFF}, 0xFFFE0001},
    {"mul.wide.s16 %r0, %h1, %h2;", {0xFFFF, 3}, 0xFFFFFFFD},
    {"mad.lo.s32 %r0, %r1, %r2, %r3;", {3, 4, 5}, 17},
    {"mad.hi.u32 %r0, %r1, %r2, %r3;", {0x80000000, 4, 5}, 7},
    {"mad.wide.u32 %d0, %r1, %r2, %d3;", {0x80000000, 4, 5}, 0x200000005},
    {"mad.lo.s64 %d0, %d1, %d2, %d3;", {minus1, 4, 5}, 1},
    {"div.s32 %r0, %r1, %r2;", {0xFFFFFFF9, 2}, 0xFFFFFFFD}, // -7 / 2 = -3
    {"div.s32 %r0, %r1, %r2;", {0x80000000, 0xFFFFFFFF}, 0x80000000},
    {"rem.s32 %r0, %r1, %r2;", {0xFFFFFFF9, 2}, 0xFFFFFFFF}, // -1
    {"rem.s32 %r0, %r1, %r2;", {0x80000000, 0xFFFFFFFF}, 0},
    {"div.u64 %d0, %d1, %d2;", {minus1, 3}, 0x5555555555555555},
    {"rem.u16 %h0, %h1, %h2;", {0xFFFF, 10}, 5},
    {"min.s32 %r0, %r1, %r2;", {0xFFFFFFFF, 1}, 0xFFFFFFFF},
    {"min.u32 %r0, %r1, %r2;", {0xFFFFFFFF, 1}, 1},
    {"max.s16 %h0, %h1, %h2;", {0xFFFF, 1}, 1},
    {"max.u64 %d0, %d1, %d2;", {minus1, 1}, minus1},
    {"neg.s32 %r0, %r1;", {1}, 0xFFFFFFFF},
    {"abs.s32 %r0, %r1;", {0xFFFFFFFF}, 1},
    {"abs.s64 %d0, %d1;", {uint64_t(1) << 63}, uint64_t(1) << 63},
    {"and.b32 %r0, %r1, -65536;", {0x12345678}, 0x12340000},
    {"or.b64 %d0, %d1, %d2;", {0xF0, 0x0F}, 0xFF},
    {"xor.b16 %h0, %h1, %h2;", {0xFFFF, 0x0F0F}, 0xF0F0},
    {"not.b32 %r0, %r1;", {0}, 0xFFFFFFFF},
    {"not.pred %p0, %p1;", {1}, 0},
    {"cnot.b32 %r0, %r1;", {0}, 1},
    {"and.pred %p0, %p1, %p2;", {1, 0}, 0},
    {"xor.pred %p0, %p1, %p2;", {1, 0}, 1},
    {"shl.b32 %r0, %r1, %r2;", {1, 31}, 0x80000000},
    {"shl.b32 %r0, %r1, %r2;", {1, 32}, 0}, // amounts are clamped, not taken modulo
    {"shl.b64 %d0, %d1, %r2;", {1, 0xFFFFFFFF}, 0},
    {"shl.b16 %h0, %h1, %r2;", {0xFFFF, 8}, 0xFF00},
    {"shr.u32 %r0, %r1, %r2;", {0x80000000, 31}, 1},
    {"shr.u32 %r0, %r1, %r2;", {0x80000000, 32}, 0},
    {"shr.s32 %r0, %r1, %r2;", {0x80000000, 100}, 0xFFFFFFFF},
    {"shr.s64 %d0, %d1, 8;", {uint64_t(0x80) << 56}, 0xFF80000000000000},
    {"shr.b16 %h0, %h1, 4;", {0xF000}, 0x0F00},
    {"shr.s16 %h0, %h1, 4;", {0xF000}, 0xFF00},
    {"shf.l.wrap.b32 %r0, %r1, %r2, %r3;", {0x80000001, 0x12345678, 36}, 0x23456788},
    {"shf.r.wrap.b32 %r0, %r1, %r2, %r3;", {0x80000001, 0x12345678, 4}, 0x88000000},
    {"shf.l.clamp.b32 %r0, %r1, %r2, %r3;", {0x80000001, 0x12345678, 36}, 0x80000001},
    {"shf.r.clamp.b32 %r0, %r1, %r2, %r3;", {0x80000001, 0x12345678, 99}, 0x12345678},
    {"popc.b32 %r0, %r1;", {0xF0F0}, 8},
    {"popc.b64 %r0, %d1;", {minus1}, 64},
    {"clz.b32 %r0, %r1;", {1}, 31},
    {"clz.b64 %r0, %d1;", {0}, 64},
    {"brev.b32 %r0, %r1;", {1}, 0x80000000},
    {"bfe.u32 %r0, %r1, 8, 8;", {0x12345678}, 0x56},
    {"bfe.s32 %r0, %r1, 4, 4;", {0x000000F0}, 0xFFFFFFFF},
    {"bfe.s32 %r0, %r1, 28, 8;", {0x80000000}, 0xFFFFFFF8}, // the sign is the last bit that there is
    {"bfe.s32 %r0, %r1, 5, 0;", {minus1}, 0},
    {"bfe.u32 %r0, %r1, 40, 8;", {minus1}, 0},
    {"bfe.s64 %d0, %d1, 60, 4;", {uint64_t(0x9) << 60}, 0xFFFFFFFFFFFFFFF9},
    {"bfi.b32 %r0, %r1, %r2, 8, 8;", {0xAB, 0x12345678}, 0x1234AB78},
    {"bfi.b32 %r0, %r1, %r2, 28, 8;", {0xAB, 0x12345678}, 0xB2345678},
    {"bfi.b32 %r0, %r1, %r2, 99, 8;", {0xAB, 0x12345678}, 0x12345678},
    {"bfi.b64 %d0, %d1, %d2, 60, 4;", {0x9, 1}, 0x9000000000000001},
    {"prmt.b32 %r0, %r1, %r2, 0x5410;", {0x33221100, 0x77665544}, 0x55441100},
    {"prmt.b32 %r0, %r1, %r2, 0xF8B0;", {0x83221180, 0xF7665544}, 0xFFFFFF80}, // the fourth bit copies the sign
    {"prmt.b32.f4e %r0, %r1, %r2, %r3;", {0x33221100, 0x77665544, 1}, 0x44332211},
    {"prmt.b32.b4e %r0, %r1, %r2, %r3;", {0x33221100, 0x77665544, 1}, 0x66770011},
    {"prmt.b32.rc8 %r0, %r1, %r2, %r3;", {0x33221100, 0x77665544, 2}, 0x22222222},
    {"prmt.b32.ecl %r0, %r1, %r2, %r3;", {0x33221100, 0x77665544, 2}, 0x33222222},
    {"prmt.b32.ecr %r0, %r1, %r2, %r3;", {0x33221100, 0x77665544, 2}, 0x22221100},
    {"prmt.b32.rc16 %r0, %r1, %r2, %r3;", {0x33221100, 0x77665544, 1}, 0x33223322},
    {"lop3.b32 %r0, %r1, %r2, %r3, 0x80;", {0xFF00, 0xF0F0, 0xCCCC}, 0xC000}, // a & b & c
    {"lop3.b32 %r0, %r1, %r2, %r3, 0xFE;", {0xFF00, 0xF0F0, 0xCCCC}, 0xFFFC}, // a | b | c
    {"lop3.b32 %r0, %r1, %r2, %r3, 0x96;", {0xFF00, 0xF0F0, 0xCCCC}, 0xC33C}, // a ^ b ^ c
    {"lop3.b32 %r0, %r1, %r2, %r3, 0xF8;", {0xFF00, 0xF0F0, 0xCCCC}, 0xFFC0}, // a | (b & c)
    {"lop3.b32 %r0, %r1, %r2, %r3, 0;", {minus1, minus1, minus1}, 0},
};

TEST(PtxInteger, KnownValues) {
  for (const Case &c : cases)
    EXPECT_EQ(evaluated(c.instruction, c.inputs), c.expected) << c.instruction;
}

TEST(PtxInteger, DrawnValuesAreAsOnTheHost) {
  std::mt19937_64 random(7);
  for (int draw = 0; draw < 50; ++draw) {
    const uint64_t a = random() >> (draw % 40), b = random() >> (draw % 60) | 1;
    const auto x = uint32_t(a), y = uint32_t(b) | 1;
    EXPECT_EQ(evaluated("add.s64 %d0, %d1, %d2;", {a, b}), a + b);
    EXPECT_EQ(evaluated("mul.lo.s64 %d0, %d1, %d2;", {a, b}), a * b);
    EXPECT_EQ(evaluated("mul.hi.u64 %d0, %d1, %d2;", {a, b}), uint64_t((unsigned __int128)a * b >> 64));
    EXPECT_EQ(evaluated("div.u64 %d0, %d1, %d2;", {a, b}), a / b);
    EXPECT_EQ(evaluated("rem.u64 %d0, %d1, %d2;", {a, b}), a % b);
    EXPECT_EQ(evaluated("div.u32 %r0, %r1, %r2;", {x, y}), x / y);
    EXPECT_EQ(evaluated("mul.wide.s32 %d0, %r1, %r2;", {x, y}), uint64_t(int64_t(int32_t(x)) * int32_t(y)));
    EXPECT_EQ(evaluated("prmt.b32 %r0, %r1, %r2, 0x7654;", {x, y}), y);
    EXPECT_EQ(evaluated("lop3.b32 %r0, %r1, %r2, %r3, 0xCA;", {x, y, a >> 32}),
              (x & y) | (~x & uint32_t(a >> 32))); // x ? y : c
  }
}

TEST(PtxInteger, DivisionByZeroIsAnError) {
  for (const char *instruction : {"div.s32 %r0, %r1, %r2;", "rem.u64 %d0, %d1, %d2;"})
    try {
      (void)evaluated(instruction, {5, 0});
      FAIL() << instruction;
    } catch (const Error &error) {
      EXPECT_EQ(std::string(error.what()), std::string("entry 't', block 0, thread 0, line 12 ('") + instruction +
                                               "') divides by zero, whose result the ISA leaves open");
    }
}

} // namespace

} // namespace ds::ptx
