@extends('layouts.app')

@section('content')
    <h1>{{ $invoice->number }}</h1>
    <form method="post" action="{{ route('invoices.send', $invoice) }}">
        @csrf
        <button>{{ __('invoices.send') }}</button>
    </form>
@endsection
