<?php

namespace App\Http\Controllers;

use App\Models\Contact;
use App\Models\Customer;
use Illuminate\Http\Request;

class CustomerContactController extends Controller
{
    public function index(Customer $customer)
    {
        return view('contacts.index', ['contacts' => $customer->contacts()->latest()->paginate()]);
    }

    public function create(Customer $customer)
    {
        return view('contacts.create');
    }

    public function store(Request $request, Customer $customer)
    {
        $contact = $customer->contacts()->create($request->all());

        return back();
    }

    public function show(Contact $contact)
    {
        return view('contacts.show', compact('contact'));
    }

    public function edit(Contact $contact)
    {
        return view('contacts.edit', compact('contact'));
    }

    public function update(Request $request, Contact $contact)
    {
        $contact->update($request->all());

        return back();
    }

    public function destroy(Contact $contact)
    {
        $contact->delete();

        return back();
    }
}
