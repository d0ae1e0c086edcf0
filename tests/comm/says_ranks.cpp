// Which ranks of its launch this program sees. A number as its argument: the rank that it says it is, whatever it was
// started as.
#include <tenon/comm/lobby.h>
#include <tenon/comm/rank_environment.h>

#include <cstdio>
#include <cstdlib>

int main(int count, char** words) {
  if (count > 1) ::setenv("RANK", words[1], 1);
  for (const int rank : tenon::ranks_with_a_process(tenon::rank_environment())) std::printf("%d ", rank);
  return 0;
}
