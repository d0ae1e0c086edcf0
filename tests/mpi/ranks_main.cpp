// main of test programs that mpirun starts.
#include "comm/ranks.h"

#include <gmock/gmock.h>

int main(int count, char** words) {
  testing::InitGoogleMock(&count, words);
  return tenon::test::run_as_rank("mpi:timeout=60");
}
