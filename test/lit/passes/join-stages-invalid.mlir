// RUN: not ds-opt %s --ds-join-stages 2>&1 | FileCheck %s

// CHECK: error: has 2 roles and 1 updates; ds-outline-fragments makes one for each
dist.mesh @mesh ["pipe"] [2]
dist.fragment @"update::0" phase update pipe 0 {
}
dist.role @stage0 ranks [0, 0] {
}
dist.role @stage1 ranks [1, 1] {
}
