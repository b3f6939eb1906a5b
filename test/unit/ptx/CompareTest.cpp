// Comparisons and selections, by ISA 9.3.1 and 9.7.6.
#include "test/unit/ptx/Harness.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace ds::ptx {

namespace {

using Predicate = std::function<bool(double, double)>;
const std::pair<const char *, Predicate> orders[] = {
    {"eq", [](double a, double b) { return a == b; }}, {"ne", [](double a, double b) { return a < b || a > b; }},
    {"lt", [](double a, double b) { return a < b; }},  {"le", [](double a, double b) { return a <= b; }},
    {"gt", [](double a, double b) { return a > b; }},  {"ge", [](double a, double b) { return a >= b; }},
};

/// Every pair of them is compared.
const float values[] = {0.0f, -0.0f, 1.0f, -2.5f, 0x1p-140f, HUGE_VALF, -HUGE_VALF, NAN};

TEST(PtxCompare, FloatsOrderedAndUnordered) {
  for (const auto &[name, holds] : orders)
    for (const float a : values)
      for (const float b : values) {
        const bool isNan = std::isnan(a) || std::isnan(b);
        const std::string setp = std::string("setp.") + name;
        EXPECT_EQ(evaluated(setp + ".f32 %p0, %r1, %r2;", {bits(a), bits(b)}), holds(a, b)) << setp << a << b;
        EXPECT_EQ(evaluated(setp + "u.f32 %p0, %r1, %r2;", {bits(a), bits(b)}), isNan || holds(a, b)) << setp << a << b;
        EXPECT_EQ(evaluated(setp + ".f64 %p0, %d1, %d2;", {bits(double(a)), bits(double(b))}), holds(a, b));
        EXPECT_EQ(evaluated("setp.num.f32 %p0, %r1, %r2;", {bits(a), bits(b)}), !isNan);
        EXPECT_EQ(evaluated("setp.nan.f32 %p0, %r1, %r2;", {bits(a), bits(b)}), isNan);
      }
}

const Case cases[] = {
    {"setp.lt.s32 %p0, %r1, %r2;", {0xFFFFFFFF, 1}, 1},
    {"setp.lt.u32 %p0, %r1, %r2;", {0xFFFFFFFF, 1}, 0},
    {"setp.lo.u32 %p0, %r1, %r2;", {1, 2}, 1},
    {"setp.ls.u16 %p0, %h1, %h2;", {2, 2}, 1},
    {"setp.hi.u64 %p0, %d1, %d2;", {2, 2}, 0},
    {"setp.hs.u32 %p0, %r1, 3;", {2}, 0},
    {"setp.ge.s64 %p0, %d1, -5;", {~uint64_t(5)}, 0},
    {"setp.eq.b32 %p0, %r1, %r2;", {7, 7}, 1},
    {"setp.ne.b64 %p0, %d1, %d2;", {uint64_t(1) << 40, 0}, 1},
    {"setp.lt.s16 %p0, %h1, 0;", {0x8000}, 1},
    {"setp.gt.ftz.f32 %p0, %r1, %r2;", {2, 1}, 0}, // both are zero
    {"setp.gt.f32 %p0, %r1, %r2;", {2, 1}, 1},
    {"setp.gt.bf16 %p0, %h1, %h2;", {0x4000, 0x3F80}, 1},
    {"setp.lt.f16 %p0, %h1, %h2;", {0x4000, 0x3C00}, 0},
    {"setp.lt.and.s32 %p0, %r1, %r2, %p3;", {1, 2, 0}, 0},
    {"setp.lt.or.s32 %p0, %r1, %r2, %p3;", {2, 1, 1}, 1},
    {"setp.lt.xor.s32 %p0, %r1, %r2, %p3;", {1, 2, 1}, 0},
    {"setp.lt.and.s32 %p0, %r1, %r2, !%p3;", {1, 2, 0}, 1},
    {"selp.b32 %r0, %r1, %r2, %p3;", {5, 6, 1}, 5},
    {"selp.b16 %h0, 1, 0, %p3;", {0, 0, 0}, 0},
    {"selp.f32 %r0, 0f3F800000, %r2, %p3;", {0, 9, 1}, 0x3F800000},
    {"selp.u64 %d0, %d1, %d2, %p3;", {5, 6, 0}, 6},
    {"slct.b32.s32 %r0, %r1, %r2, %r3;", {5, 6, 0}, 5},
    {"slct.b32.s32 %r0, %r1, %r2, %r3;", {5, 6, 0x80000000}, 6},
    {"slct.f32.f32 %r0, %r1, %r2, %r3;", {5, 6, 0x80000000}, 5}, // -0 is not below 0
    {"slct.f32.f32 %r0, %r1, %r2, %r3;", {5, 6, 0x7FC00000}, 6},
    {"slct.f32.f32 %r0, %r1, %r2, %r3;", {5, 6, 0x80000001}, 6},
    {"slct.ftz.f32.f32 %r0, %r1, %r2, %r3;", {5, 6, 0x80000001}, 5},
    {"testp.finite.f32 %p0, %r1;", {0x7F800000}, 0},
    {"testp.infinite.f32 %p0, %r1;", {0xFF800000}, 1},
    {"testp.number.f64 %p0, %d1;", {0x7FF0000000000000}, 1},
    {"testp.notanumber.f32 %p0, %r1;", {0x7FC00000}, 1},
    {"testp.normal.f32 %p0, %r1;", {0}, 1}, // zero counts as normal
    {"testp.normal.f32 %p0, %r1;", {1}, 0},
    {"testp.subnormal.f32 %p0, %r1;", {1}, 1},
};

TEST(PtxCompare, KnownValues) {
  for (const Case &c : cases)
    EXPECT_EQ(evaluated(c.instruction, c.inputs), c.expected) << c.instruction;
}

} // namespace

} // namespace ds::ptx
