! SPDX-License-Identifier: BSD-3-Clause
! A job of MPI in Fortran: compiled as it is by "use mpi", and with -DF08 by "use mpi_f08".
program world
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
#ifdef F08
  type(MPI_Comm) :: twin
  type(MPI_Request) :: requests(2)
#else
  integer :: twin
  integer :: requests(2)
#endif
  integer :: rank, ierror, n
  logical :: is_there
  double precision :: given(64), got(64)
  character(len=256) :: mode, file

  call get_command_argument(1, mode)
  call get_command_argument(2, file)
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, twin, ierror)
  given = rank + 0.25d0
  do n = 1, 10
    call MPI_Allreduce(given, got, 64, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
    call MPI_Bcast(got, 64, MPI_DOUBLE_PRECISION, 0, twin, ierror)
  end do
  got = given
  call MPI_Allreduce(MPI_IN_PLACE, got, 64, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  call MPI_Ibarrier(twin, requests(1), ierror)
  call MPI_Iallreduce(given, got, 64, MPI_DOUBLE_PRECISION, MPI_SUM, twin, requests(2), ierror)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  if (trim(mode) == 'elsewhere' .and. rank == 2) then
    call MPI_Recv(got, 1, MPI_DOUBLE_PRECISION, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  end if
  do
    inquire (file=trim(file), exist=is_there)
    if (len_trim(file) == 0 .or. .not. is_there) exit
    call sleep(1)
  end do
  call MPI_Allreduce(given, got, 64, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(z16)', transfer(got(1), 0_8)
  call MPI_Comm_free(twin, ierror)
  call MPI_Finalize(ierror)
end program world
